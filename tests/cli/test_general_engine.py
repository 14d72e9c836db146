"""The general engine finds the thresholds of the compiled one: the paper's layers as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rgr_dist.cli import call


@pytest.mark.slow  # trains cells of base-grid and of softmax twice: some ten minutes
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize(
    ("layer", "cells", "heads"),
    [
        ("max", [{"m": 64, "d_model": [16, 32, 64]}, {"m": 128, "d_model": [32, 64]}], [1, 2, 4]),
        ("softmax", [{"m": 64, "d_model": 32}], [1, 2]),
    ],
)
def test_thresholds_are_those_of_the_compiled_engine_within_a_step_of_d_k(
    layer: str,
    cells: list[dict[str, Any]],
    heads: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, dict[tuple[int, int, int], int]] = {}
    for name, model in (("paper", layer), ("general", {"zoo": layer})):
        search = {"heads": heads, "confirm_seeds": 0}
        study = {"name": name, "model": model, "cells": cells, "search": search}
        study |= {"training": {"max_steps": 20_000}}  # a model's own default may differ
        Path(f"{name}.yaml").write_text(yaml.safe_dump(study))
        assert call(["run", f"{name}.yaml"]) == 0
        capsys.readouterr()
        assert call(["thresholds", f"{name}.yaml", "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)["thresholds"]
        found[name] = {(r["m"], r["d_model"], r["h"]): r["d_k"] for r in rows if r["d_k"]}
    both = found["paper"].keys() & found["general"].keys()
    sizes = {(m, d_model) for m, d_model, _ in found["paper"]}
    assert {(m, d_model) for m, d_model, _ in both} == sizes
    assert sizes
    for place in both:
        assert abs(found["paper"][place] - found["general"][place]) <= 1, place
