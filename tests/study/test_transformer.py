"""Studies of the transformer: the paper's values, what it does not use, and identity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from rgr_dist.problem.embeddings import sample_with_null
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study, parse_study

DOCUMENT: dict[str, Any] = {
    "name": "x",
    "model": "transformer",
    "cells": [{"m": 64, "d_model": 16}],
    "search": {"mode": "grid", "D_K": [8], "heads": [1, 2]},
}
PLAIN: dict[str, Any] = {"name": "x", "cells": [{"m": 64, "d_model": 16}]}


def cell_of(**parts: Any) -> Cell:
    return parse_study({**DOCUMENT, **parts}).cells[0]


def test_what_is_not_written_takes_the_papers_value_for_the_transformer() -> None:
    training = cell_of().training
    assert (training.max_steps, training.weight_decay) == (100_000, 0.01)
    assert training.batch_size == 128, "the paper gives none; this is our choice"
    assert cell_of().context.length == 16
    assert cell_of(training={"batch_size": 32, "max_steps": 500}).training.batch_size == 32


def test_the_address_of_a_run_is_pinned() -> None:
    """Stored rows are found by it: change it only with ``PROTOCOL``."""
    run = Run(cell=cell_of(), h=2, d_k=4, seed=0)
    config = json.loads(run.config_json)
    assert config["cell"]["model"] == "transformer"
    assert config["cell"]["training"]["batch_size"] == 128
    assert config["cell"]["training"]["weight_decay"] == 0.01
    assert run.run_id == "b415261019ab94bdb7497a0e35cdebcd"
    assert run.cell.cell_id == "8c1d457299f28067"


def test_keys_that_came_later_are_left_out_of_what_is_written_for_other_models() -> None:
    (cell,) = parse_study(PLAIN).cells
    assert "batch_size" not in cell.model_dump()["training"]
    assert "weight_decay" not in json.loads(cell.model_dump_json())["training"]
    assert Cell.model_validate_json(cell.model_dump_json()) == cell


@pytest.mark.parametrize("change", [{"batch_size": 64}, {"weight_decay": 0.0}])
def test_a_key_of_the_transformer_changes_the_run_and_survives_being_written(
    change: dict[str, Any],
) -> None:
    one, other = cell_of(), cell_of(training=change)
    assert one.cell_id != other.cell_id
    assert Cell.model_validate_json(other.model_dump_json()) == other
    cells = [{"m": 64, "d_model": 16}, {"m": 65, "d_model": 16, "training": change}]
    study = parse_study({**DOCUMENT, "cells": cells})
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_the_small_study_compares_splits_of_equal_width() -> None:
    study = load_study("gpt2-small")
    assert {cell.model for cell in study.cells} == {"transformer"}
    assert study.search.mode == "grid"
    assert 1 in study.search.heads
    assert max(study.search.heads) >= 4
    for h in study.search.heads:
        assert all(D_K % h == 0 for D_K in study.search.D_K or ())


PAPER = {"mode": "grid", "D_K": (64, 128, 256, 512), "heads": (1, 2, 4, 8), "seeds": 7}


def test_the_papers_study_takes_the_rows_of_gpt2_that_the_user_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match=r"gpt2: embedding.file: model.safetensors"):
        load_study("gpt2")
    table = np.random.default_rng(0).normal(size=(50_257, 768)).astype(np.float32)
    save_file({"wte.weight": table}, "model.safetensors")
    Path("tokens-by-frequency.txt").write_text("\n".join(map(str, range(7_000, 0, -1))))
    study = load_study("gpt2")
    (cell,) = study.cells
    assert (cell.model, cell.m, cell.d_model, cell.context.length) == ("transformer", 6144, 768, 16)
    assert (cell.training.max_steps, cell.training.weight_decay) == (100_000, 0.01)
    assert study.search.model_dump(include=set(PAPER)) == PAPER
    rows = sample_with_null(cell, 0)
    np.testing.assert_array_equal(rows[[0, 6143, 6144]], table[[7_000, 857, 50_256]])
