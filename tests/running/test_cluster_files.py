"""The files that start clusters: Ray's own schema, the pinned versions, nothing open to others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[2]
SLURM = ROOT / "deploy/slurm.sbatch"


@pytest.fixture
def config() -> Any:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


def test_ray_accepts_the_cluster_file_and_refuses_a_mistyped_key(config: Any) -> None:
    validate_config(prepare_config(config))
    config["setup_command"] = config.pop("setup_commands")
    with pytest.raises(jsonschema.ValidationError, match="setup_command"):
        validate_config(prepare_config(config))


def test_images_hold_the_pinned_ray_and_nodes_install_the_pinned_project(config: Any) -> None:
    (pinned,) = re.findall(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)
    images = re.findall(r"rayproject/ray:([\d.]+)-py311", (ROOT / "cluster.yaml").read_text())
    assert set(images) == {pinned}
    assert any("-c constraints.txt -e" in command for command in config["setup_commands"])
    # A bare ``results/`` among the excluded would leave any folder of that name behind.
    assert all(pattern.startswith("/") for pattern in config["rsync_exclude"])


def test_workers_are_started_from_none(config: Any) -> None:
    nodes = config["available_node_types"]
    workers = [node for name, node in nodes.items() if name != config["head_node_type"]]
    assert all(node["min_workers"] == 0 < node["max_workers"] for node in workers)
    assert config["max_workers"] >= sum(node["max_workers"] for node in workers)


def test_nothing_is_open_to_the_world(config: Any) -> None:
    """Ray's own security group would let everybody in by ssh; every call must show a token."""
    assert all(
        node["node_config"]["SecurityGroupIds"] for node in config["available_node_types"].values()
    )
    starts = config["head_start_ray_commands"] + config["worker_start_ray_commands"]
    assert all("RAY_AUTH_MODE=token" in line for line in starts if "ray start" in line)
    assert any(path.endswith(".ray/auth_token") for path in config["file_mounts"])
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]
    assert "RAY_AUTH_MODE=token" in SLURM.read_text()


def test_the_slurm_script_is_one_that_bash_and_slurm_read() -> None:
    assert subprocess.run(["bash", "-n", SLURM], check=False).returncode == 0
    lines = SLURM.read_text().splitlines()
    options = [line for line in lines if line.startswith("#SBATCH")]
    assert options == lines[1 : 1 + len(options)], "Slurm reads none after the first command"
    assert any("--ntasks-per-node=1" in line for line in options), "one Ray per node"
