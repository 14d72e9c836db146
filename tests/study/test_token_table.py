"""Token tables from files: which rows a cell uses, its address, and what is said without them."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from rgr_dist.engines.choose import make_engine
from rgr_dist.problem.embeddings import sample_embedding, sample_with_null
from rgr_dist.problem.matching_task import MatchingTask
from rgr_dist.study import assets, token_table
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study

VOCABULARY, WIDTH = 40, 8
COUNTS = {7: 50, 3: 90, 12: 50, 39: 10**6, 0: 8, 21: 7, 5: 6, 30: 5, 31: 4, 32: 3, 33: 2, 34: 1}
RANKED = [3, 7, 12, 0, 21, 5, 30, 31, 32, 33, 34]
"""Tokens by their counts, the lower first where they are equal, without 39, which is the last."""


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(VOCABULARY, WIDTH)).astype(np.float32)


@pytest.fixture
def home(tmp_path: Path, table: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model's weights in ``model/`` and counts of its tokens."""
    (tmp_path / "model").mkdir()
    other = np.zeros((2, 2), np.float32)
    save_file({"wte.weight": table, "wpe.weight": other}, tmp_path / "model/model.safetensors")
    lines = [f"{token},{count}" for token, count in COUNTS.items()]
    (tmp_path / "counts.csv").write_text("\n".join(["token,count", *lines]))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(assets, "_ARRAYS", {})
    return tmp_path


def study_of(home: Path, model: str = "transformer", m: Any = 9, **embedding: Any) -> Study:
    written = {"family": "table", "source": "model", "counts": "counts.csv"} | embedding
    written = {key: value for key, value in written.items() if value is not None}
    document: dict[str, Any] = {
        "name": "tabled",
        "model": model,
        "cells": [{"m": m, "d_model": WIDTH}],
        "embedding": written,
        "context": {"length": 2},
        "search": {"mode": "grid", "D_K": [4], "heads": [1, 2], "seeds": 2},
    }
    path = home / "tabled.yaml"
    path.write_text(yaml.safe_dump(document))
    return load_study(str(path))


def test_items_are_the_most_frequent_tokens_and_null_is_end_of_text(
    home: Path, table: np.ndarray
) -> None:
    (cell,) = study_of(home).cells
    np.testing.assert_array_equal(sample_with_null(cell, 0), table[[*RANKED[:9], 39]])
    np.testing.assert_array_equal(MatchingTask.of(cell, 5).table, table[[*RANKED[:9], 39]])
    (cell,) = study_of(home, model="max").cells
    np.testing.assert_array_equal(sample_embedding(cell, 3), table[RANKED[:9]])
    assert sample_embedding(cell, 3).dtype == np.float64


def test_a_cell_is_named_by_the_rows_it_uses_and_not_by_where_they_came_from(
    home: Path, table: np.ndarray
) -> None:
    cells = study_of(home, m=[8, 9]).cells
    assert len({cell.cell_id for cell in cells}) == 2
    assert str(home) not in cells[0].model_dump_json()
    (home / "model").rename(home / "elsewhere")
    (home / "counts.csv").rename(home / "c.txt")
    moved = study_of(home, m=[8, 9], source="elsewhere/model.safetensors", counts="c.txt")
    assert moved.cells == cells
    unused = table.copy()
    unused[RANKED[10]] += 1
    save_file({"transformer.wte.weight": unused}, home / "elsewhere/model.safetensors")
    assert study_of(home, m=[8, 9], source="elsewhere", counts="c.txt").cells == cells
    unused[RANKED[8]] += 1
    save_file({"wte.weight": unused}, home / "elsewhere/model.safetensors")
    other = study_of(home, m=[8, 9], source="elsewhere", counts="c.txt").cells
    assert [one == two for one, two in zip(other, cells, strict=True)] == [True, False]


def test_counts_before_tokens_are_read_by_their_names(home: Path) -> None:
    cells = study_of(home).cells
    table = pd.read_csv(home / "counts.csv")[["count", "token"]]
    table.to_csv(home / "turned.csv", index=False)
    table.to_parquet(home / "turned.parquet")
    for number, header in enumerate(["token,token_count", "token_id,counts", "id,n"]):
        table[["token", "count"]].to_csv(
            home / f"{number}.csv", header=header.split(","), index=False
        )
    for number, header in enumerate(["counts,tokens", "COUNT,TOKENID", "token_count,token"], 3):
        table.to_csv(home / f"{number}.csv", header=header.split(","), index=False)
    for name in ("turned.csv", "turned.parquet", *(f"{number}.csv" for number in range(6))):
        assert study_of(home, counts=name).cells == cells


def test_a_study_written_out_finds_its_files_again_from_anywhere(home: Path) -> None:
    study = study_of(home, m=[8, 9])
    (home / "deep").mkdir()
    copy = home / "deep/study.yaml"
    copy.write_text(study.to_yaml())
    assert load_study(str(copy)) == study


def test_weights_that_the_hub_has_kept_here_are_used_and_written_out_by_their_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = study_of(home).cells
    kept = home / "hub/models--some--model"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs/main").write_text("1" * 40)
    (kept / "snapshots").mkdir()
    (home / "model").rename(kept / "snapshots" / ("1" * 40))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home / "hub"))
    study = study_of(home, source="some/model")
    assert study.cells == cells
    (home / "deep").mkdir()
    copy = home / "deep/study.yaml"
    copy.write_text(study.to_yaml())
    assert yaml.safe_load(copy.read_text())["embedding"]["source"] == "some/model"
    assert load_study(str(copy)) == study


def test_a_study_crosses_to_another_process_with_its_arrays(home: Path) -> None:
    study = study_of(home)
    arrays = assets.needed(study.cells)
    assert [array.shape for array in arrays.values()] == [(10, WIDTH)]
    there = Study.model_validate_json(study.model_dump_json())
    assert there == study
    assets._ARRAYS.clear()
    with pytest.raises(assets.AssetError, match="is not loaded"):
        sample_with_null(there.cells[0], 0)
    assets.take(arrays)
    assert sample_with_null(there.cells[0], 0).shape == (10, WIDTH)


@pytest.fixture
def text(home: Path) -> Iterator[Path]:
    """A text, and a tokenizer of the model that knows its words by number."""
    words = {f"w{i}": i for i in range(VOCABULARY - 1)} | {"<end>": VOCABULARY - 1}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(2)  # as many models have them, for their own input alone
    tokenizer.enable_padding(pad_id=5)
    tokenizer.save(str(home / "model/tokenizer.json"))
    lines = [" ".join(f"w{token}" for token in RANKED[: size + 1]) for size in range(11)]
    (home / "text.txt").write_text("\n".join([*reversed(lines), "w38 " * 1000]))
    return home / "text.txt"


@pytest.mark.parametrize("lines_at_once", [2, token_table.LINES_AT_ONCE])
def test_tokens_are_counted_in_a_text_up_to_a_limit(
    lines_at_once: int, home: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_table, "LINES_AT_ONCE", lines_at_once)
    words = text.read_text().split()
    for limit in (66, 67, 1066, 5000):
        study = study_of(home, counts=None, text="text.txt", tokens=limit)
        counts = pd.Series(words[:limit]).value_counts()
        ranked = sorted(counts.index, key=lambda word: (-counts[word], int(word[1:])))
        expected = assets.get(study.cells[0].embedding.digest or "")
        model = load_rows(home, [int(word[1:]) for word in ranked[:9]])
        np.testing.assert_array_equal(expected[:9], model)


def load_rows(home: Path, tokens: list[int]) -> np.ndarray:
    from safetensors.numpy import load_file

    return load_file(home / "model/model.safetensors")["wte.weight"][tokens]


def test_a_byte_pair_tokenizer_counts_as_it_splits(home: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = ["low lower lowest", "new newer newest", "low new low"] * 3
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 1, special_tokens=["<|endoftext|>"])
    tokenizer.train_from_iterator(words, trainer)
    tokenizer.save(str(home / "model/tokenizer.json"))
    (home / "text.txt").write_text("\n".join(words))
    lines = (home / "text.txt").read_text().splitlines(keepends=True)
    ids = pd.Series([i for line in lines for i in tokenizer.encode(line).ids]).value_counts()
    ranked = sorted(ids.index, key=lambda token: (-ids[token], token))
    study = study_of(home, m=5, counts=None, text="text.txt")
    rows = assets.get(study.cells[0].embedding.digest or "")
    np.testing.assert_array_equal(rows[:5], load_rows(home, ranked[:5]))


def test_an_absent_text_is_told_with_what_the_paper_counts_in(home: Path, text: Path) -> None:
    text.unlink()
    message = refused(home, counts=None, text="text.txt")
    assert message.startswith(f"text: {text}: cannot be read: No such file or directory; the paper")
    assert "https://huggingface.co/datasets/Salesforce/wikitext" in message


def refused(home: Path, **parts: Any) -> str:
    with pytest.raises(StudyError) as error:
        study_of(home, **parts)
    message = str(error.value)
    assert message.isprintable()
    assert message.startswith(f"{home / 'tabled.yaml'}: embedding.")
    return message.removeprefix(f"{home / 'tabled.yaml'}: embedding.")


def to_fetch(folder: Path, *names: str) -> str:
    address = "https://huggingface.co/openai-community/gpt2/resolve/main"
    urls = " and ".join(f"{address}/{name}" for name in names)
    return f"has no {' and no '.join(names)}; fetch {urls} and put it into {folder}/"


def test_absent_weights_are_told_with_what_to_fetch_and_where_to_put_it(home: Path) -> None:
    message = refused(home, source="openai-community/gpt2")
    assert not logging.getLogger("huggingface_hub").isEnabledFor(logging.WARNING)  # of retries
    folder = home / "openai-community/gpt2"
    place = f"source: openai-community/gpt2: no folder {folder}, and the hub failed ("
    assert message.startswith(place)
    assert message.partition("): ")[2] == to_fetch(folder, "model.safetensors")
    assert "has no model.safetensors" in refused(home, source="x" * 300)
    (home / "empty").mkdir()
    empty, both = home / "empty", ("model.safetensors", "tokenizer.json")
    told = f"source: {empty}: {to_fetch(empty, both[0])}"
    assert refused(home, source="empty") == told
    of_text = {"counts": None, "text": "counts.csv"}
    assert refused(home, source="empty", **of_text) == f"source: {empty}: {to_fetch(empty, *both)}"
    model = home / "model"
    told = f"source: {model}: {to_fetch(model, both[1])}"
    for source in ("model", "model/model.safetensors"):
        assert refused(home, source=source, **of_text) == told


@pytest.mark.parametrize(
    ("package", "parts"),
    [
        ("tokenizers", {"counts": None, "text": "text.txt"}),
        ("huggingface_hub", {"source": "openai-community/gpt2"}),
    ],
)
def test_an_absent_package_is_told_with_how_to_install_it(
    home: Path, text: Path, monkeypatch: pytest.MonkeyPatch, package: str, parts: dict[str, Any]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = refused(home, **parts)
    needs = {
        "tokenizers": "source: needs the package tokenizers; pip install 'rgr-dist[gpt2]'",
        "huggingface_hub": f"source: openai-community/gpt2: no folder {home}/openai-community/"
        "gpt2, and the hub needs pip install 'rgr-dist[gpt2]': has no model.safetensors; fetch ",
    }
    assert message.startswith(needs[package])


def test_what_a_table_cannot_be_is_refused_in_one_line(home: Path, table: np.ndarray) -> None:
    said = "counts: 11 tokens occur besides the last, which is NULL, and m = 12 needs as many; "
    assert refused(home, m=12) == f"{said}give a smaller m, or counts of more text"
    assert study_of(home, m=11).cells
    document = yaml.safe_load((home / "tabled.yaml").read_text()) | {"cells": [{"d_model": WIDTH}]}
    with pytest.raises(StudyError, match=r"^study: cells\[0\]\.m: missing; it has no default$"):
        parse_study(document, home=home)
    assert "counts: give either counts" in refused(home, text="text.txt")
    assert "counts: give either counts" in refused(home, counts=None)
    assert refused(home, sorce="x").startswith(
        "sorce: unknown key of family table; did you mean 'source'?"
    )
    assert refused(home, counts="none.csv").startswith(f"counts: {home}/none.csv: cannot be read")
    for line, fault in {
        "3 x": "line 1 is '3 x'",
        "3 1\n3 2": "token 3 is listed twice",
        "40 1": "the table has tokens 0 to 39",
        "-1 2": "the table has tokens 0 to 39",
        "3 -1": "a count is below 0",
    }.items():
        (home / "bad").write_text(line)
        told = f"counts: {home}/bad: {fault}; {token_table.COUNTS}"
        assert refused(home, counts="bad") == told
    (home / "model/model.safetensors").write_bytes(b"no weights")
    assert refused(home).startswith(f"source: {home}/model/model.safetensors: cannot be read: ")
    save_file({"lm_head.weight": table}, home / "model/model.safetensors")
    weights = home / "model/model.safetensors"
    told = f"its tables are lm_head.weight; {token_table.WANTED}"
    assert refused(home) == f"source: {weights}: {told}"
    bad = table.copy()
    bad[3, 4] = np.inf
    told = "its table is empty, has one row, or an entry is not finite in float32"
    for one in (bad, table[:1], table[:, :0], np.full((3, 8), np.nan), np.full((3, 8), 1e39)):
        save_file({"wte.weight": one}, weights)
        assert refused(home) == f"source: {weights}: {told}; {token_table.WANTED}"
    save_file({"wte.weight": table[:2].astype(np.float16)}, weights)
    assert token_table.read_table(weights).dtype == np.float32
    save_file({"wte.weight": table[:, :5]}, home / "model/model.safetensors")
    assert refused(home) == "source: its vectors have width 5; give d_model: 5"


def test_counts_of_a_table_are_by_token_and_those_left_out_are_none(home: Path) -> None:
    (home / "c").write_text("39 4\n0 0\n3 7\n")
    counts = token_table.read_counts(home / "c", VOCABULARY)
    assert counts.tolist() == [7 * (i == 3) + 4 * (i == 39) for i in range(VOCABULARY)]
    (home / "empty").write_text("token,count\n")
    assert token_table.read_counts(home / "empty", 2).tolist() == [0, 0]


def test_a_text_that_cannot_be_counted_is_refused_in_one_line(
    home: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, of_text = home / "model/tokenizer.json", {"counts": None, "text": "text.txt"}
    text.write_text("w3 w5 w39\n" * 2)  # the last is unknown, so <end>, which is 39
    count = token_table.count_tokens
    assert count(text, tokenizer, 9, VOCABULARY)[[3, 5, 39]].tolist() == [2, 2, 2]
    assert count(text, tokenizer, 4, VOCABULARY)[[3, 5, 39]].tolist() == [2, 1, 1]
    told = f"text: {text}: {tokenizer} has a token 39, and the table 39 of them; {token_table.TEXT}"
    with pytest.raises(StudyError, match=f"^{re.escape(told)}$"):
        count(text, tokenizer, 9, VOCABULARY - 1)
    monkeypatch.setattr(token_table, "LONGEST_LINE", 11)
    assert count(text, tokenizer, 9, VOCABULARY).sum() == 6
    monkeypatch.setattr(token_table, "LONGEST_LINE", 10)
    told = "it has a line of 10 characters or more; break it"
    assert refused(home, **of_text) == f"text: {text}: {told}; {token_table.TEXT}"
    tokenizer.unlink()
    with pytest.raises(StudyError, match=r"^source: .*; give a model's tokenizer\.json$"):
        count(text, tokenizer, 9, VOCABULARY)


@pytest.mark.parametrize("model", ["max", "transformer"])
def test_cells_of_a_table_train_in_every_engine(home: Path, model: str) -> None:
    (cell,) = study_of(home, model=model).cells
    runs = [Run(cell=cell, h=2, d_k=2, seed=seed) for seed in (0, 1)]
    expected = make_engine("reference", model=model).weights_after(runs, 20)
    names = ["lanes"] if model == "transformer" else ["lanes", "fused"]
    for name in names:
        weights = make_engine(name, model=model).weights_after(runs, 20)
        for one, other in zip(weights, expected, strict=True):
            for key in ("W_Q", "W_K"):
                np.testing.assert_allclose(one[key], other[key], rtol=0, atol=1e-4)
