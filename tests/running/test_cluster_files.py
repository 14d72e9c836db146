"""The files that start clusters hold to Ray's, Kubernetes' and KubeRay's own schemas; offline."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[2]
LAUNCHER_FILES = ["cluster.yaml", "deploy/onprem.yaml"]
KUBERNETES = "1.34"
RAY_JOB = json.loads((Path(__file__).parent / "kuberay/rayjob.json").read_text())


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def pinned(package: str) -> str:
    """The version that constraints.txt pins for a package."""
    pins = re.findall(
        rf"^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE
    )
    assert len(pins) == 1
    return str(pins[0])


def manifest(kind: str) -> Any:
    """The document of a kind in the file for Kubernetes."""
    documents = list(yaml.safe_load_all((ROOT / "deploy/kuberay.yaml").read_text()))
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


@pytest.fixture
def ray_job() -> Any:
    return manifest("RayJob")


def groups(job: Any) -> Iterator[Any]:
    """The head and the workers of a job."""
    cluster = job["spec"]["rayClusterSpec"]
    yield from (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])


def check(job: Any) -> None:
    """Hold a job to KubeRay's schema, and its pods to that of Kubernetes."""
    jsonschema.validate(job, RAY_JOB)
    for group in groups(job):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, **group["template"]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", LAUNCHER_FILES)
def test_ray_accepts_the_cluster_file(name: str) -> None:
    validate_config(prepare_config(load(name)))


def test_ray_refuses_a_mistyped_key_and_an_unknown_head() -> None:
    for key in ("min_workers", "setup_commands"):
        config = load("cluster.yaml")
        holder = config["available_node_types"]["cpu"] if key == "min_workers" else config
        holder[key[:-1]] = holder.pop(key)
        with pytest.raises(jsonschema.ValidationError, match=key[:-1]):
            validate_config(prepare_config(config))
    config = load("cluster.yaml") | {"head_node_type": "haed"}
    with pytest.raises(ValueError, match="head_node_type"):
        validate_config(prepare_config(config))


@pytest.mark.parametrize("name", LAUNCHER_FILES)
def test_nodes_install_the_pinned_project_whole_and_send_no_usage_stats(name: str) -> None:
    """A bare ``results/`` among the excluded would leave any folder of that name behind."""
    config = load(name)
    assert any("-c constraints.txt -e" in command for command in config["setup_commands"])
    assert any("--disable-usage-stats" in command for command in config["head_start_ray_commands"])
    assert all(pattern.startswith("/") for pattern in config["rsync_exclude"])


@pytest.mark.parametrize("name", ["cluster.yaml", "deploy/README.md"])
def test_images_hold_the_pinned_ray(name: str) -> None:
    images = re.findall(r"rayproject/ray:([\d.]+)-py311", (ROOT / name).read_text())
    assert images
    assert set(images) == {pinned("ray")}


def test_kuberay_store_is_a_volume_that_outlives_the_head_pod(ray_job: Any) -> None:
    pod = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert "persistentVolumeClaim" in volume
    assert mount["name"] == volume["name"]
    assert f"--store {mount['mountPath']}" in ray_job["spec"]["entrypoint"]


def test_kubernetes_and_kuberay_accept_the_manifests(ray_job: Any) -> None:
    kubernetes_validate.validate(manifest("PersistentVolumeClaim"), KUBERNETES, strict=True)
    check(ray_job)
    assert ray_job["apiVersion"] == "ray.io/v1"
    assert ray_job["spec"]["rayClusterSpec"]["rayVersion"] == pinned("ray")


@pytest.mark.parametrize(
    "path",
    [
        "spec.entrypoint",
        "spec.rayClusterSpec",
        "spec.rayClusterSpec.authOptions.mode",
        "spec.rayClusterSpec.workerGroupSpecs.0.minReplicas",
        "spec.rayClusterSpec.workerGroupSpecs.0.template.spec.containers.0.resources",
        "spec.rayClusterSpec.headGroupSpec.template.spec.volumes.0.persistentVolumeClaim.claimName",
    ],
)
def test_a_mistyped_key_of_the_job_is_refused(ray_job: Any, path: str) -> None:
    *above, key = path.split(".")
    holder = copy.deepcopy(ray_job)
    job = holder
    for step in above:
        holder = holder[int(step) if step.isdigit() else step]
    holder[f"{key}s"] = holder.pop(key)
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(job)


def test_workers_are_started_from_none_and_may_be_taken_away() -> None:
    config = load("cluster.yaml")
    workers = {
        name: node
        for name, node in config["available_node_types"].items()
        if name != config["head_node_type"]
    }
    assert all(node["min_workers"] == 0 < node["max_workers"] for node in workers.values())
    assert config["max_workers"] >= sum(node["max_workers"] for node in workers.values())
    market = workers["cpu"]["node_config"]["InstanceMarketOptions"]
    assert market == {"MarketType": "spot"}
    assert all(g.get("minReplicas", 0) == 0 for g in groups(manifest("RayJob")))


def test_nothing_is_open_to_the_world(ray_job: Any) -> None:
    """Ray's own security group would let everybody in by ssh; every call must show a token."""
    config = load("cluster.yaml")
    for node in config["available_node_types"].values():
        assert node["node_config"]["SecurityGroupIds"]
    for name in LAUNCHER_FILES:
        config = load(name)
        starts = config["head_start_ray_commands"] + config["worker_start_ray_commands"]
        assert all("RAY_AUTH_MODE=token" in line for line in starts if "ray start" in line)
        assert any(path.endswith(".ray/auth_token") for path in config["file_mounts"])
        assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]
    assert ray_job["spec"]["rayClusterSpec"]["authOptions"]["mode"] == "token"
