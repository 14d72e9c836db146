"""Tests a wheel on every Ray of the range, an environment each: ``make test-range``.

In each, the base adds little to Ray, and ``find_threshold`` works beside a user's ``search.py`` and
``analysis/``. With the extra ``study``, the tests of the search pass, and a small study gives the
same thresholds to the byte, run whole or killed and resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.small_study import parts, runs_on, write_study

HOME = Path(".range")
"""Where the environments are kept: what is installed in one is not installed again."""
MOST_MB = 20
"""Megabytes that the base may add to ``ray[tune]``, which takes some 600 itself."""
TOOLS = ("filelock", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "PyYAML")
SEARCH_TESTS = ("-n", "2", "--dist", "loadfile", "-o", "filterwarnings=default", "tests/search")
"""Warnings of old libraries about each other are no errors here."""
FIND = """
import json, search, analysis, rgr_dist
from ray import tune

assert search.mine and analysis.mine

def train(config):
    import search, analysis
    assert search.mine and analysis.mine
    width, seed = config["width"], config["seed"]
    tune.report({"score": 1 - 1 / (1 + width) ** 2 - (seed % 3) / 1000})

if __name__ == "__main__":
    found = rgr_dist.find_threshold(train, "width", range(1, 65), "score", 0.99, seeds=3)
    print(json.dumps({"status": found.status, "value": found.value, "scores": found.scores}))
"""
"""Finds a threshold in a folder whose own modules have the names of two of our rooms."""

messages = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Environment:
    """What is installed.

    Attributes:
        ray: its version.
        python: the interpreter.
        is_oldest: every other library has the version of its floor.
        has_study: the extra ``study`` is installed and tested too.
    """

    ray: str
    python: str = "python3.11"
    is_oldest: bool = False
    has_study: bool = True


ENVIRONMENTS = {
    "oldest": Environment("2.44.1", is_oldest=True),
    "2.48": Environment("2.48.0"),
    "2.52": Environment("2.52.1"),
    "2.55": Environment("2.55.1"),
    "newest": Environment("2.60.0"),
    "3.12": Environment("2.60.0", "python3.12", has_study=False),
    "3.13": Environment("2.60.0", "python3.13", has_study=False),
}


def main(names: list[str]) -> int:
    """Test in these environments, or in all; returns the exit status."""
    HOME.mkdir(exist_ok=True)
    wheel = build()
    found: dict[str, dict[str, str]] = {}
    for name in names or ENVIRONMENTS:
        environment = ENVIRONMENTS[name]
        if shutil.which(environment.python) is None or not starts(environment.python):
            messages.print(f"{name}: not tested, no {environment.python}")
            continue
        messages.rule(f"{name}: Ray {environment.ray}, {environment.python}")
        found[name] = check(name, environment, wheel)
        messages.print(f"{name}: " + ", ".join(found[name]))
    differing = [
        f"{kind} of {name} differs from the first"
        for kind in ("threshold", "whole", "resumed")
        for name, results in found.items()
        if results.get(kind) not in (None, next(iter(found.values())).get(kind))
    ]
    messages.print(*differing, sep="\n")
    messages.print(f"{len(found)} environments, {len(differing)} differences")
    return bool(differing) or not found


def starts(python: str) -> bool:
    """Whether an interpreter is more than a name."""
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


def build() -> Path:
    """The wheel of the working tree."""
    folder = HOME / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", ".", "-w", folder)
    return next(folder.glob("*.whl")).absolute()


def check(name: str, environment: Environment, wheel: Path) -> dict[str, str]:
    """Install the wheel and test it; returns what must be the same in every environment."""
    home = (HOME / name).absolute()
    python = home / "venv/bin/python"
    if not python.exists():
        run(environment.python, "-m", "venv", home / "venv")
    pins = home / "constraints.txt"
    pins.write_text(constraints(environment))
    install = (python, "-m", "pip", "install", "--quiet", "--no-compile", "-c", pins)
    is_new = not (home / "venv/bin/rgr").exists()
    run(*install, "ray[tune]")
    before = megabytes(home / "venv")
    run(*install, "--force-reinstall", "--no-deps", wheel)
    run(*install, wheel)
    work = home / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    if is_new:
        added = megabytes(home / "venv") - before
        messages.print(f"{name}: ray[tune] takes {before:.0f} MB, the base adds {added:.1f} MB")
        assert added < MOST_MB
        refused = subprocess.run([home / "venv/bin/rgr"], capture_output=True, text=True)
        assert refused.returncode == 2, refused
        assert "pip install 'rgr-dist[study]'" in refused.stderr, refused
    results = {"threshold": find(python, work / "find")}
    if environment.has_study:
        run(*install, f"{wheel}[study,plot]", *TOOLS)
        shutil.copytree("tests", work / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy("pyproject.toml", work)
        run(python, "-m", "pytest", *SEARCH_TESTS, cwd=work)
        for kind in ("whole", "resumed"):
            results[kind] = study(home / "venv/bin/rgr", work / kind, is_killed=kind == "resumed")
    return results


def megabytes(folder: Path) -> float:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def constraints(environment: Environment) -> str:
    """The tested versions, or the floors alone in the oldest environment, with this Ray."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["study"] + extras["plot"]
    pins = dict(
        line.split("==")
        for line in Path("constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    if environment.is_oldest:
        pins = dict(re.split(r">=", each) for each in needed if ">=" in each)
        pins = {name.partition("[")[0]: version for name, version in pins.items()}
    pins["ray"] = environment.ray
    return "".join(f"{name}=={version}\n" for name, version in pins.items())


def find(python: Path, folder: Path) -> str:
    """What ``find_threshold`` finds beside a user's modules of our rooms' names."""
    folder.mkdir()
    (folder / "search.py").write_text("mine = True")
    (folder / "analysis").mkdir()
    (folder / "analysis/__init__.py").write_text("mine = True")
    (folder / "find.py").write_text(FIND)
    return str(json.loads(run(python, "find.py", cwd=folder).splitlines()[-1]))


def study(rgr: Path, folder: Path, is_killed: bool) -> str:
    """The thresholds of the small study as JSON; its driver may be killed once a row is stored."""
    folder.mkdir()
    write_study(folder)
    if is_killed:
        driver = subprocess.Popen(
            [rgr, "run", "small.yaml", "--cpus", "2"],
            cwd=folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while runs_on(driver) and not parts(folder):
            pass
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
    run(rgr, "run", "small.yaml", "--cpus", "2", cwd=folder)
    return run(rgr, "thresholds", "small.yaml", "--format", "json", cwd=folder)


def run(*command: object, cwd: Path | None = None) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        messages.print(done.stdout[-5000:], markup=False)
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*ENVIRONMENTS, []], help="all if none")
    sys.exit(main(parser.parse_args().names))
