"""Mutation tests: changes the code of a room bit by bit and lists the changes no test notices.

    make mutants                              every room below
    make mutants ROOM=rgr_dist/store          one folder or file
    make mutants ROOM=rgr_dist/analysis SAMPLE=2000
                                              that many of its mutants, the same at each call
    make mutants ROOM=rgr_dist/analysis SAMPLE=2000 DRAW=2
                                              as many drawn anew, whatever the first draw was:
                                              for tests written for its survivors

mutmut makes the mutants and runs each against the tests that reach it. It skips decorated
functions, so it works on a copy, ``.mutants/<room>``, where ``@d def f`` is written out as
``def f`` and ``f = d(f)``. What torch, or in some rooms Numba, compiles runs as plain Python.

As a pytest plugin (``-p tests.mutants``) this file prepares the tests for such a run.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from hypothesis import Phase, settings
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.state import state
from scipy import stats

ROOMS = (
    "rgr_dist/search",
    "rgr_dist/analysis",
    "rgr_dist/store",
    "rgr_dist/problem",
    "rgr_dist/planning",
    "rgr_dist/study",
    "rgr_dist/running",
    "rgr_dist/engines",
)
TESTS = {  # where the tests of a room are, if not in a folder of its name alone
    "rgr_dist/planning": ("tests/planning", "tests/cli", "tests/test_open_study.py"),
    "rgr_dist/study": ("tests/study", "tests/cli"),
}
COMPILED = ("rgr_dist/problem",)  # Numba is off there, else no mutant would run
SOURCES = ("rgr_dist",)
COPIED = (
    *("tests", "benchmarks", "deploy", "docs"),
    *("README.md", "Makefile", "cluster.yaml", "constraints.txt"),
)
NOT_MUTATED = (
    "rgr_dist/search/tune/*",  # adapters, whose tests start Ray, as do those of the next five
    *(f"rgr_dist/running/{name}.py" for name in ("client", "cluster", "ray_health", "run_study")),
    "rgr_dist/running/worker.py",
    "rgr_dist/engines/fused/*",  # kernels that Numba compiles; nothing else can run them
    "rgr_dist/engines/api.py",  # kernels inline one of its functions
    "rgr_dist/engines/cuda/*",  # needs a GPU
)
KEPT = {"staticmethod", "classmethod"}  # mutmut knows these
RUN_AT_IMPORT = Path("run-at-import.json")  # functions, beside the mutants
AT_IMPORT = pytest.StashKey[set[str]]()
RUN = """
from hashlib import sha256
from mutmut import __main__ as mutmut
from mutmut.workers.isolation import ForkServerRunner

{drawn}
def collect(mutant_names):
    mutants, files = collect_all(mutant_names=mutant_names)
    kept = drawn([each[1] for each in mutants], {sample}, {draw})
    return [each for each in mutants if each[1] in kept], files

collect_all = mutmut.collect_source_file_mutation_data
mutmut.collect_source_file_mutation_data = collect
ForkServerRunner.run_clean_tests = lambda *_, **__: 0  # they passed as their reach was measured
mutmut.cli(["run"])
"""
FINISH = """
import sys
from pathlib import Path
from rgr_dist.cli import call
from tests.small_study import write_study

write_study(Path("."))
sys.exit(call(["run", "small.yaml"]))
"""
SMALL_RUN = Path(".mutants/small-run")  # what many tests read, and cannot make without Ray
ALIVE = {0, 33, None}  # exit codes: survived, no test reaches it, not run
EXAMPLES = 15  # of a property, where its test draws more: most mutants fail on the first few
COSTS = Path("costs.json")  # beside the mutants: what is in TOOK and NEEDS
TOOK: dict[str, float] = {}  # seconds, by the name of the fixture
NEEDS: dict[str, list[str]] = {}  # names of fixtures, by the test
SLOW = {"tests.chromium": "sync_playwright"}  # not done
SLOW |= {"tests.run_here": "train_rows"} if "NUMBA_DISABLE_JIT" in os.environ else {}
SECONDS = 30.0  # of its quickest tests, at least one: a mutant that they let pass is a survivor


def main(rooms: tuple[str, ...], sample: int | None, draw: int) -> int:
    """Test the mutants of some rooms, or of all; prints by file how many of those run were killed.

    The diffs of the survivors are in ``.mutants/<room>/survivors.diff``. A run that was stopped
    goes on where it was.

    Args:
        sample: how many mutants of a room to run; all if not given.
        draw: which sample of that size.
    """
    finish_small_study()
    for room in rooms or ROOMS:
        folder = Path(".mutants", room.removesuffix(".py").replace("/", "."))
        stage(folder, room)
        run = RUN.format(drawn=inspect.getsource(drawn), sample=sample, draw=draw)
        mutmut = [str(Path(sys.executable).absolute()), "-P", "-c", run]
        plain = {"CXX": ""} | ({"NUMBA_DISABLE_JIT": "1"} if room in COMPILED else {})
        done = subprocess.run(mutmut, cwd=folder, env=os.environ | plain)
        if done.returncode:
            return done.returncode
        report(folder, sample, draw)
    return 0


def finish_small_study() -> None:
    """Run the small study of the tests, once for all rooms."""
    if not SMALL_RUN.exists():
        draft = SMALL_RUN.with_name("draft")
        draft.mkdir(parents=True, exist_ok=True)
        python = [str(Path(sys.executable).absolute()), "-c", FINISH]
        subprocess.run(
            python, cwd=draft, env={**os.environ, "PYTHONPATH": str(Path.cwd())}, check=True
        )
        draft.rename(SMALL_RUN)


def drawn(mutants: list[str], sample: int | None, draw: int) -> set[str]:
    """That many of them at random, always the same: those whose names have the smallest digests."""
    salt = "" if draw == 1 else f"{draw} "
    return set(sorted(mutants, key=lambda name: sha256((salt + name).encode()).digest())[:sample])


def stage(folder: Path, room: str) -> None:
    """Copy the project with its decorators written out; what is unchanged keeps its results."""
    paths = [path for root in (*SOURCES, *COPIED) for path in files_of(Path(root))]
    changed = set()
    for path in paths:
        content = path.read_bytes()
        if path.parts[0] in SOURCES and path.suffix == ".py":
            content = cst.parse_module(content).visit(WriteOutDecorators()).bytes
        if write_if_changed(folder / path, content):
            changed.add(path.parts[0])
    for copy in (folder, folder / "mutants"):
        copied = {path.relative_to(copy) for root in SOURCES for path in files_of(copy / root)}
        copied |= {path.relative_to(copy) for path in files_of(copy / "tests")}
        for stale in copied - set(paths):
            is_of_mutants = stale.suffix in (".meta", ".spans")
            if not (is_of_mutants and stale.with_suffix("") in paths):
                (copy / stale).unlink()
    if changed:
        (folder / "mutants/mutmut-stats.json").unlink(missing_ok=True)  # which test reaches what
    forget_survivors(folder)

    own = Path("tests", *[part for part in Path(room).parts if part != "rgr_dist"])
    tests = TESTS.get(room, (str(own if own.is_dir() else own.parent),))
    keys = {
        "source_paths": SOURCES,
        "also_copy": COPIED,
        "only_mutate": [room if room.endswith(".py") else f"{room}/*"],
        "do_not_mutate": NOT_MUTATED,
        "pytest_add_cli_args_test_selection": tests,
        "pytest_add_cli_args": ["-p", "tests.mutants", "-p", "no:cacheprovider"],
        "process_isolation": "forkserver",  # else mutants inherit what the tests have cached
        "use_git_change_detection": False,
        "timeout_multiplier": 4.0,  # of what its tests take, without their fixtures,
        "timeout_constant": 8.0,  # and so many seconds
    }
    section = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    project = [Path("pyproject.toml").read_text(), "[tool.mutmut]", *section, ""]
    write_if_changed(folder / "pyproject.toml", "\n".join(project).encode())


def forget_survivors(folder: Path) -> None:
    """Let mutmut test the survivors of an earlier run again."""
    for path in folder.glob("mutants/**/*.py.meta"):
        results = json.loads(path.read_text())
        codes = results["exit_code_by_key"]
        codes |= {name: None for name, code in codes.items() if code in ALIVE}
        path.write_text(json.dumps(results))


def files_of(root: Path) -> Iterator[Path]:
    """The file itself, or the files below a folder, without bytecode."""
    if root.is_file():
        yield root
    for folder, _, names in os.walk(root, followlinks=True):
        if "__pycache__" not in folder:
            yield from (Path(folder, name) for name in names)


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write a file unless it has that content already, since mutmut goes by the file's time."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


class WriteOutDecorators(cst.CSTTransformer):
    """Turns ``@d def f`` into ``def f`` and ``f = d(f)``, in modules and classes."""

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        """Write out the decorators of one function."""
        decorators = [each.decorator for each in updated_node.decorators]
        plain = (isinstance(each, cst.Name) and each.value in KEPT for each in decorators)
        if not decorators or any(plain):
            return updated_node
        value: cst.BaseExpression = updated_node.name
        for decorator in reversed(decorators):
            value = cst.Call(decorator, [cst.Arg(value)])
        assignment = cst.Assign([cst.AssignTarget(updated_node.name)], value)
        return cst.FlattenSentinel(
            [
                updated_node.with_changes(decorators=[]),
                cst.SimpleStatementLine([assignment]),
            ]
        )


def report(folder: Path, sample: int | None, draw: int) -> None:
    """Print killed/run by file, with an interval for all, and keep the diffs of the survivors."""
    os.chdir(folder)
    results = {
        path.relative_to("mutants").with_suffix(""): json.loads(path.read_text())
        for path in sorted(Path("mutants").rglob("*.py.meta"))
    }
    codes = {path: told["exit_code_by_key"] for path, told in results.items()}
    names = [name for of_file in codes.values() for name in of_file]
    kept, survivors = drawn(names, sample, draw), []
    for path, of_file in codes.items():
        run = [name for name in of_file if name in kept]
        alive = [name for name in run if of_file[name] in ALIVE]
        survivors += [get_diff_for_mutant(name, path=path) for name in alive]
        print(f"{len(run) - len(alive):5d}/{len(run):<5d} {path}")
    Path("survivors.diff").write_text("\n".join(survivors))
    killed = len(kept) - len(survivors)
    share = f"{killed / max(1, len(kept)):.1%}{interval(killed, len(kept)) if sample else ''}"
    print(f"of {len(names)} mutants {len(kept)} were run, {killed} killed: {share}")
    print(f"the others: {folder}/survivors.diff")
    os.chdir(Path(*[".."] * len(folder.parts)))


def interval(killed: int, run: int) -> str:
    """The 95 % Wilson interval of the share of all that would be killed, were all run."""
    ends = stats.binomtest(killed, max(1, run)).proportion_ci(0.95, method="wilson")
    return f" (95 % {ends.low:.1%} to {ends.high:.1%})"


def mutant_under_test() -> str:
    """The mutant's name, ``stats`` while mutmut finds out which test reaches what, or nothing."""
    return os.environ.get("MUTANT_UNDER_TEST", "")


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Import the project anew if the mutant is in a function that runs when it is imported.

    Of the tests that reach a mutant, keep the quickest alone.
    """
    function = mutant_under_test().rpartition("__mutmut_")[0]
    if RUN_AT_IMPORT.exists() and function in json.loads(RUN_AT_IMPORT.read_text()):
        for name in set(sys.modules) - {"tests.mutants"}:
            if name.partition(".")[0] in (*SOURCES, "tests"):
                del sys.modules[name]
    if "__mutmut_" in mutant_under_test() and COSTS.exists():
        tests = [arg for arg in args if "::" in arg]
        args[:] = [*(arg for arg in args if arg not in tests), *quickest(tests)]


def quickest(tests: list[str]) -> list[str]:
    """The quickest of these tests, in the order of their times, within ``SECONDS``.

    A fixture of the session is made anew for every mutant, so tests that need none come earlier.
    """
    calls: dict[str, float] = json.loads(Path("mutmut-stats.json").read_text())["duration_by_test"]
    took, needs = json.loads(COSTS.read_text())
    kept: list[str] = []
    made: set[str] = set()

    def seconds(test: str) -> float:
        needed = set(needs.get(test, ())) - made
        return calls.get(test, 0.0) + sum(took.get(name, 0.0) for name in needed)

    spent = 0.0
    for test in sorted(tests, key=seconds):
        spent += seconds(test)
        if kept and spent > SECONDS:
            break
        made |= set(needs.get(test, ()))
        kept.append(test)
    return kept


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the names of the functions that have run so far."""
    if mutant_under_test() == "stats":
        session.config.stash[AT_IMPORT] = set(state()._stats)
        RUN_AT_IMPORT.write_text(json.dumps(sorted(state()._stats)))
        NEEDS.update(
            (item.nodeid, list(getattr(item, "fixturenames", ()))) for item in session.items
        )


def pytest_runtest_setup() -> None:
    """Empty the caches of functions, so that every test reaches what it calls."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in SOURCES:
            for value in vars(module).values():
                getattr(type(value), "cache_clear", id)(value)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let mutmut know that every test reaches what runs at import."""
    state()._stats.update(item.config.stash.get(AT_IMPORT, set()))


def pytest_configure(config: pytest.Config) -> None:
    """Save time: a failing example need not be the smallest, nor old objects be collected."""
    gc.freeze()
    phases = [Phase.explicit, Phase.generate]
    settings.register_profile("mutants", settings.get_profile("repeatable"), phases=phases)
    settings.load_profile("mutants")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
    """Measure how long each fixture takes, those that it needs apart."""
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        TOOK[fixturedef.argname] = max(
            TOOK.get(fixturedef.argname, 0.0), time.perf_counter() - start
        )


def pytest_sessionfinish() -> None:
    """Keep how long each fixture took and which tests need it, for the runs of the mutants."""
    if mutant_under_test() == "stats":
        COSTS.write_text(json.dumps([TOOK, NEEDS]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Draw few examples of a property, and run quick tests first: most mutants fail in those."""
    for test in (getattr(item, "obj", None) for item in items):
        drawn: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
        if drawn and drawn.max_examples > EXAMPLES:
            quick = settings(drawn, max_examples=EXAMPLES)
            setattr(test, "_hypothesis_internal_use_settings", quick)  # noqa: B010
    if "__mutmut_" in mutant_under_test() and COSTS.exists():
        order = quickest([item.nodeid for item in items])
        items.sort(
            key=lambda item: order.index(item.nodeid) if item.nodeid in order else len(order)
        )


@pytest.fixture(autouse=True, scope="session")
def no_processes_nor_training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Skip tests that start a process, Ray and the browser included: it may not hold the mutant.

    And tests that train a whole study without Numba, which takes too long; one is here finished.
    """
    finished = Path(__file__).parents[3] / SMALL_RUN.name  # beside the room's folder
    shutil.copytree(finished, tmp_path_factory.getbasetemp() / SMALL_RUN.name)
    popen = subprocess.Popen.__init__

    def start(self: Any, arguments: Any, *others: Any, **options: Any) -> None:
        if Path(arguments[0]).is_absolute():  # unlike git
            pytest.skip("starts a process")
        popen(self, arguments, *others, **options)

    def skip(*_: Any, **__: Any) -> None:
        pytest.skip("takes too long for a mutant")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", start)
        for module, name in SLOW.items():
            if module in sys.modules:
                patch.setattr(sys.modules[module], name, skip)
        yield


if __name__ == "__main__":
    room, sample, draw = (os.environ.get(name) for name in ("ROOM", "SAMPLE", "DRAW"))
    sys.exit(main((room,) if room else (), int(sample) if sample else None, int(draw or 1)))
