"""The files that start clusters are accepted by Ray's own validation; nothing here is online."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[2]
LAUNCHER_FILES = ["cluster.yaml", "deploy/onprem.yaml"]


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def pinned(package: str) -> str:
    """The version that constraints.txt pins for a package."""
    pins = re.findall(
        rf"^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE
    )
    assert len(pins) == 1
    return str(pins[0])


@pytest.fixture
def ray_job() -> Any:
    documents = list(yaml.safe_load_all((ROOT / "deploy/kuberay.yaml").read_text()))
    (job,) = [document for document in documents if document["kind"] == "RayJob"]
    return job


@pytest.mark.parametrize("name", LAUNCHER_FILES)
def test_ray_accepts_the_cluster_file(name: str) -> None:
    validate_config(prepare_config(load(name)))


@pytest.mark.parametrize("name", LAUNCHER_FILES)
@pytest.mark.parametrize("key", ["setup_commands", "file_mounts", "rsync_exclude"])
def test_ray_refuses_a_mistyped_key(name: str, key: str) -> None:
    config = load(name)
    config[key[:-1]] = config.pop(key)
    with pytest.raises(jsonschema.ValidationError, match=key[:-1]):
        validate_config(prepare_config(config))


def test_ray_refuses_a_mistyped_key_of_a_node_type() -> None:
    config = load("cluster.yaml")
    node = config["available_node_types"]["cpu"]
    node["min_worker"] = node.pop("min_workers")
    with pytest.raises(jsonschema.ValidationError, match="min_worker"):
        validate_config(prepare_config(config))


def test_ray_refuses_an_unknown_head_node_type() -> None:
    config = load("cluster.yaml")
    config["head_node_type"] = "haed"
    with pytest.raises(ValueError, match="head_node_type"):
        validate_config(prepare_config(config))


@pytest.mark.parametrize("name", LAUNCHER_FILES)
def test_nodes_install_the_pinned_project_and_send_no_usage_stats(name: str) -> None:
    config = load(name)
    assert any("-c constraints.txt -e" in command for command in config["setup_commands"])
    assert any("--disable-usage-stats" in command for command in config["head_start_ray_commands"])


@pytest.mark.parametrize("name", LAUNCHER_FILES)
def test_excluded_folders_are_anchored_at_the_root(name: str) -> None:
    """A bare ``results/`` would leave the package rgr_dist/results behind."""
    assert all(pattern.startswith("/") for pattern in load(name)["rsync_exclude"])


@pytest.mark.parametrize("name", ["cluster.yaml", "deploy/README.md"])
def test_images_hold_the_pinned_ray(name: str) -> None:
    images = re.findall(r"rayproject/ray:([\d.]+)-py311", (ROOT / name).read_text())
    assert images
    assert set(images) == {pinned("ray")}


def test_kuberay_job_runs_the_pinned_ray(ray_job: Any) -> None:
    assert ray_job["apiVersion"] == "ray.io/v1"
    assert ray_job["spec"]["rayClusterSpec"]["rayVersion"] == pinned("ray")


def test_kuberay_store_is_a_volume_that_outlives_the_head_pod(ray_job: Any) -> None:
    pod = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert "persistentVolumeClaim" in volume
    assert mount["name"] == volume["name"]
    assert f"--out {mount['mountPath']}" in ray_job["spec"]["entrypoint"]
