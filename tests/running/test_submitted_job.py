"""A job runs on the cluster it was submitted to, beside the user's ``search`` and ``analysis``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.running.head import ENVIRONMENT, RAY, free_port, head
from tests.small_study import write_study

pytest.importorskip("aiohttp_cors", reason="needs the extra cluster: ray[default]")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WIDTHS, SEEDS, TARGET = range(1, 65), 3, 0.99
SEARCH = "def score(width, seed):\n    return 1 - 1 / (1 + width) ** 2 - seed % 3 / 1000\n"
ANALYSIS = f"TARGET = {TARGET}\n"
MINE = f"""
import json, analysis, ray, rgr_dist
from ray import tune

def train(config):
    import analysis, search, rgr_dist.analysis, rgr_dist.search
    for ours in rgr_dist.analysis, rgr_dist.search:
        assert "wheel" in ours.__file__, ours
    assert analysis.TARGET == {TARGET}
    tune.report({{"score": search.score(config["width"], config["seed"])}})

found = rgr_dist.find_threshold(
    train, "width", range(1, 65), "score", analysis.TARGET, seeds={SEEDS},
    resources={{"cpu": 1, "submitted": 0.1}},  # which no other Ray has
)
print("found " + json.dumps({{"status": found.status, "value": found.value}}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the wheel of the working tree is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder), str(ROOT)], check=True)
    return folder


@pytest.fixture(scope="module")
def dashboard(wheel: Path) -> Iterator[str]:
    """The address to which jobs are submitted; the cluster has the wheel, and a resource."""
    port = free_port()
    installed = {
        "PYTHONPATH": str(wheel),
        "PATH": os.pathsep.join(
            [str(wheel / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
    }
    options = [f"--port={free_port()}", f"--ray-client-server-port={free_port()}"]
    options += ['--resources={"submitted": 1}']
    with head(installed, *options, dashboard=port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a user submits: a script, a study, and modules with the names of two of our rooms."""
    working = tmp_path / "working"
    (working / "analysis").mkdir(parents=True)
    (working / "search.py").write_text(SEARCH)
    (working / "analysis/__init__.py").write_text(ANALYSIS)
    (working / "mine.py").write_text(MINE)
    write_study(working, "mine.yaml", name="mine")
    return working


def submit(program: str, dashboard: str, store: str, cwd: Path) -> str:
    """What the job prints that the page of clusters submits of a program."""
    told = [
        command for block in blocks(ROOT / "docs/clusters.md", "sh") for command in block.commands
    ]
    (command,) = [one for one in told if one[:3] == ["ray", "job", "submit"] and program in one]
    words = [
        word.replace("http://HOST:8265", dashboard).replace("s3://BUCKET/results", store)
        for word in command[1:]
    ]
    done = subprocess.run(
        [*RAY, *words],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def brute_force() -> int:
    """The smallest width that passes, by every width and every seed."""
    users: dict[str, object] = {}
    exec(SEARCH, users)
    score = users["score"]
    assert callable(score)
    means = {width: sum(score(width, s) for s in range(SEEDS)) / SEEDS for width in WIDTHS}
    return min(width for width, mean in means.items() if mean >= TARGET)


def test_a_threshold_is_found_on_the_cluster(dashboard: str, folder: Path) -> None:
    said = submit("mine.py", dashboard, "", folder)
    found = re.search(r"found (\{.*\})", said)
    assert found, said
    assert json.loads(found[1]) == {"status": "found", "value": brute_force()}


def test_a_study_is_run_on_the_cluster(dashboard: str, folder: Path, tmp_path: Path) -> None:
    said = submit("mine.yaml", dashboard, f"file://{tmp_path}/results", folder)
    assert "starting Ray" not in said
    assert (tmp_path / "results/studies/mine/report/index.html").exists(), said
