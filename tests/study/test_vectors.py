"""Files of vectors in the forms that people have them, and how rows meet a study's items."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from rgr_dist.problem.embeddings import sample_embedding, sample_with_null
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import parse_study
from rgr_dist.study.vectors import Vectors, prepared, read_vectors, rows_of_items

TABLE = np.random.default_rng(1).normal(size=(40, 12)).astype(np.float32)
WORDS = [f"w{i}" for i in range(38)] + [".", "new york"]


def text(names: list[str] | None = None, heading: str = "", sign: str = " ") -> str:
    rows = [[f"{one:.6f}" for one in row] for row in TABLE]
    listed = (
        rows if names is None else [[name, *row] for name, row in zip(names, rows, strict=True)]
    )
    return heading + "".join(f"{sign.join(row)}\n" for row in listed)


def bfloat16(path: Path) -> None:
    half = (TABLE.view(np.uint32) >> 16).astype(np.uint16)
    header = {"emb": {"dtype": "BF16", "shape": [40, 12], "data_offsets": [0, half.nbytes]}}
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + half.tobytes())


def shards(path: Path) -> None:
    save_file({"model.embed.weight": TABLE}, path.parent / "a.safetensors")
    save_file({"norm": TABLE[0]}, path.parent / "b.safetensors")
    where = {"model.embed.weight": "a.safetensors", "norm": "b.safetensors"}
    path.write_text(json.dumps({"weight_map": where}))


FRAME = pd.DataFrame(TABLE)
YEARS = [str(2000 + i) for i in range(40)]
LISTS = pd.DataFrame({"id": WORDS, "emb": list(TABLE)})
WRITERS: dict[str, Callable[[Path], Any]] = {
    "plain.npy": lambda path: np.save(path, TABLE),
    "half.npy": lambda path: np.save(path, TABLE.astype(np.float16)),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(TABLE.astype(">f8"))),
    "one.safetensors": lambda path: save_file({"emb": TABLE, "norm": TABLE[0]}, path),
    "half.safetensors": bfloat16,
    "model.safetensors.index.json": shards,
    "lists.parquet": LISTS.to_parquet,
    "ids.parquet": lambda path: LISTS.assign(id=range(40)).to_parquet(path),
    "columns.parquet": lambda path: FRAME.rename(columns=str).assign(token=WORDS).to_parquet(path),
    "index.parquet": FRAME.rename(columns=str).set_index(pd.Index(WORDS, name="w")).to_parquet,
    "bare.parquet": FRAME.rename(columns=str).to_parquet,
    "pandas.csv": FRAME.to_csv,
    "no_index.csv": lambda path: FRAME.to_csv(path, index=False),
    "no_heading.csv": lambda path: FRAME.to_csv(path, header=False),
    "only_numbers.csv": lambda path: np.savetxt(path, TABLE, delimiter=","),
    "names.csv": lambda path: FRAME.assign(n=WORDS).set_index("n").to_csv(path),
    "words.tsv": lambda path: path.write_text(text(WORDS, sign="\t")),
    "numpy.txt": lambda path: np.savetxt(path, TABLE),
    "glove.txt": lambda path: path.write_text(text(WORDS)),
    "numbers.txt": lambda path: path.write_text(text([str(2000 + i) for i in range(40)])),
    "word2vec.txt": lambda path: path.write_text(text(WORDS, "40 12\n")),
    "phrases.txt": lambda path: path.write_text(text([f"a {x}" for x in WORDS], "40 12\n")),
    "years.csv": lambda path: FRAME.assign(token=YEARS).set_index("token").to_csv(path),
    "crawl.vec": lambda path: path.write_text(text(WORDS, "40 12\n").replace("\n", " \n")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_of_a_table_is_read_as_that_table(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert found.rows.dtype == np.float32
    rough = "half" in name
    np.testing.assert_allclose(found.rows, TABLE, rtol=2**-7 if rough else 1e-5, atol=1e-6)
    if name.split(".")[0] in ("lists", "columns", "index", "names", "words", "glove", "word2vec"):
        assert found.names == WORDS
    if name == "years.csv":
        assert found.names == YEARS
    if "only" in name or name.endswith(".npy") or name == "no_index.csv":
        assert found.names is None


def test_a_folder_holds_the_table_of_its_model(tmp_path: Path) -> None:
    save_file({"emb": TABLE[::-1].copy()}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read_vectors(tmp_path).rows, TABLE[::-1])
    shards(tmp_path / "model.safetensors.index.json")
    np.testing.assert_array_equal(read_vectors(tmp_path).rows, TABLE)


def test_a_table_is_found_in_any_of_its_shards_by_its_name(tmp_path: Path) -> None:
    tables = {name: TABLE + i for i, name in enumerate("abc")}
    for name, table in tables.items():
        save_file({name: table}, tmp_path / f"{name}.safetensors")
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in tables}}))
    for name, table in tables.items():
        np.testing.assert_array_equal(read_vectors(path, name).rows, table)
    with pytest.raises(ValueError, match=r"several .* a, b, c$"):
        read_vectors(path)
    with pytest.raises(ValueError, match=r"'d'.* a, b, c$"):
        read_vectors(path, "d")


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nan.npy": (lambda path: np.save(path, np.where(TABLE[3, 4] == TABLE, np.nan, TABLE)), "row 3"),
    "nan.csv": (FRAME.mask(TABLE[3, 4] == FRAME).to_csv, "row 3"),
    "first.csv": (lambda path: path.write_text(text(sign=",").replace("\n", ",nan\n")), "row 0"),
    "huge.npy": (lambda path: np.save(path, np.full((2, 2), 1e300)), "row 0"),
    "flat.npy": (lambda path: np.save(path, TABLE[0]), "shape"),
    "object.npy": (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "pickle"),
    "two.safetensors": (lambda path: save_file({"a": TABLE, "b": TABLE.T}, path), "a, b"),
    "torn.safetensors": (lambda path: path.write_bytes(b"\xff" * 20), "header"),
    "torn.txt": (lambda path: path.write_text(text(WORDS, "41 12\n")), "41"),
    "ragged.txt": (lambda path: path.write_text(text(WORDS) + "x 0.5 0.25\n"), "row 40"),
    "empty.txt": (lambda path: path.write_text("\n"), "no vectors"),
    "both.parquet": (LISTS.assign(other=list(TABLE)).to_parquet, "emb, other"),
    "named.parquet": (LISTS.assign(other=WORDS).to_parquet, "id, emb, other"),
    "words.parquet": (LISTS[["id"]].assign(other=WORDS).to_parquet, "columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_table_of_finite_numbers_is_refused(name: str, tmp_path: Path) -> None:
    write, said = REFUSED[name]
    write(tmp_path / name)
    with pytest.raises(Exception, match=said):
        read_vectors(tmp_path / name)


@pytest.mark.parametrize("word", ["nan", "NaN", "-inf", "+Inf"])
def test_a_first_number_that_is_not_finite_is_no_name(word: str, tmp_path: Path) -> None:
    rows = text().splitlines()
    rows[3] = " ".join([word, *rows[3].split()[1:]])
    (tmp_path / "v.txt").write_text("\n".join(rows))
    with pytest.raises(ValueError, match="row 3 "):
        read_vectors(tmp_path / "v.txt")


def test_words_of_word2vec_may_be_numbers_as_all_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("3 2\n7 1 2\n1.5 3 4\n9 5 6\n")
    found = read_vectors(tmp_path / "v.txt")
    assert (found.names, found.rows.tolist()) == (["7", "1.5", "9"], [[1, 2], [3, 4], [5, 6]])


def test_columns_of_whole_numbers_are_vectors_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    frame.to_parquet(tmp_path / "v.parquet")
    found = read_vectors(tmp_path / "v.parquet")
    assert (found.names, found.rows.tolist()) == (None, [[1, 3], [2, 4]])
    frame.assign(c=[0.5, 0.25]).drop(columns="b").to_parquet(tmp_path / "v.parquet")
    found = read_vectors(tmp_path / "v.parquet")
    assert (found.names, found.rows.tolist()) == (["1", "2"], [[0.5], [0.25]])


PLAIN = {  # text, names and vectors
    "1 2\n3 4\n": (None, [[1, 2], [3, 4]]),
    "0 1 2\n3 4 5\n": (None, [[0, 1, 2], [3, 4, 5]]),
    "1,0.5\n2,0.25\n": (None, [[1, 0.5], [2, 0.25]]),
    "1,0.5,0\n2,0.25,1\n": (["1", "2"], [[0.5, 0], [0.25, 1]]),
    "0,1,2\n3,4,5\n": (None, [[3, 4, 5]]),
    "1,2,3\n0.5,4,5\n": (None, [[0.5, 4, 5]]),
    "2,3,4\n3,4,5\n": (None, [[2, 3, 4], [3, 4, 5]]),
    ",1,2\nw,4,5\n": (["w"], [[4, 5]]),
    "word,x\nw,4\nv,5\n": (["w", "v"], [[4], [5]]),
    "id,x,y\n7,1,2\n9,3,4\n": (["7", "9"], [[1, 2], [3, 4]]),
    "Unnamed: 0,x,y\n7,1,2\n9,3,4\n": (["7", "9"], [[1, 2], [3, 4]]),
    "x,y,z\n7,1,2\n9,3,4\n": (None, [[7, 1, 2], [9, 3, 4]]),
}


@pytest.mark.parametrize("text", PLAIN)
def test_names_and_headings_are_told_from_numbers_by_one_rule(text: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(text)
    found = read_vectors(tmp_path / "v.csv")
    assert (found.names, found.rows.tolist()) == PLAIN[text]


def study(folder: Path, **embedding: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "cells": [{"m": 16, "d_model": 12}],
        "embedding": {"family": "vectors", "file": "v.npy", **embedding},
    }


def cell_of(folder: Path, document: dict[str, Any]) -> Cell:
    return parse_study(document, homes=[folder]).cells[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "v.npy", TABLE)
    return tmp_path


def test_items_take_the_first_rows_or_those_that_are_listed(folder: Path) -> None:
    np.testing.assert_array_equal(sample_embedding(cell_of(folder, study(folder)), 5), TABLE[:16])
    order = np.random.default_rng(2).permutation(40)
    (folder / "order.txt").write_text("\n".join(map(str, order)))
    cell = cell_of(folder, study(folder, rows="order.txt"))
    np.testing.assert_array_equal(sample_embedding(cell, 0), TABLE[order[:16]])
    np.save(folder / "order.npy", order)
    assert cell.cell_id == cell_of(folder, study(folder, rows="order.npy")).cell_id
    assert cell.cell_id != cell_of(folder, study(folder)).cell_id


def test_the_items_of_an_edge_list_take_the_rows_of_their_names(folder: Path) -> None:
    pairs = [(WORDS[(7 * i) % 40], WORDS[(7 * i + 3) % 40]) for i in range(40)]
    table = pd.DataFrame(pairs, columns=["source", "target"])
    table.to_csv(folder / "e.csv", index=False)
    (folder / "names.txt").write_text("\ufeff" + "\n".join(WORDS) + "\n", "utf-8")
    document = {
        **study(folder, names="names.txt"),
        "graph": {"family": "edges", "file": "e.csv"},
        "cells": [{"d_model": 12}],
    }
    rows = sample_embedding(cell_of(folder, document), 0)
    by_name = dict(zip(WORDS, TABLE, strict=True))
    np.testing.assert_array_equal(rows, [by_name[name] for name in sorted(WORDS)])
    del document["embedding"]["names"]
    with pytest.raises(StudyError, match="names:"):
        cell_of(folder, document)
    (folder / "names.txt").write_text("\n".join(["other", *WORDS[1:]]))
    document["embedding"]["names"] = "names.txt"
    with pytest.raises(StudyError, match=r"1 items .*'w0'"):
        cell_of(folder, document)
    (folder / "names.txt").write_text("\n".join(WORDS))
    (folder / "order.txt").write_text("\n".join(map(str, range(40))))
    document["embedding"]["rows"] = "order.txt"
    with pytest.raises(StudyError, match=r"40 items .* rows"):
        cell_of(folder, document)


def test_numbers_from_0_without_gaps_are_the_rows_and_others_are_refused(folder: Path) -> None:
    document = {
        **study(folder),
        "graph": {"family": "edges", "file": "e.txt"},
        "cells": [{"d_model": 12}],
    }
    (folder / "e.txt").write_text("".join(f"{i} {(i + 1) % 20}\n" for i in range(20)))
    np.testing.assert_array_equal(sample_embedding(cell_of(folder, document), 0), TABLE[:20])
    (folder / "e.txt").write_text("".join(f"{i + 1} {(i + 1) % 20 + 1}\n" for i in range(20)))
    with pytest.raises(StudyError, match="names:"):
        cell_of(folder, document)


def test_null_is_the_last_row_or_the_one_that_is_named(folder: Path) -> None:
    document = study(folder) | {"model": "transformer", "context": {"length": 4}}
    document["search"] = {"mode": "grid", "heads": [1], "D_K": [4]}
    right = np.concatenate([TABLE[:16], TABLE[-1:]])
    np.testing.assert_array_equal(sample_with_null(cell_of(folder, document), 0), right)
    document["embedding"]["null_row"] = 20
    rows = sample_with_null(cell_of(folder, document), 0)
    np.testing.assert_array_equal(rows[-1], TABLE[20])
    for wrong in (3, 40):
        document["embedding"]["null_row"] = wrong
        with pytest.raises(StudyError, match=f"null_row: {wrong} .* 39"):
            cell_of(folder, document)
    with pytest.raises(StudyError, match=r"null_row: .*transformer"):
        cell_of(folder, study(folder, null_row=20))


def test_shuffling_pairs_the_same_rows_with_other_items_at_each_seed(folder: Path) -> None:
    cell = cell_of(folder, study(folder, shuffle=True))
    one, other = (sample_embedding(cell, seed) for seed in (0, 1))
    assert (one != other).any()
    np.testing.assert_array_equal(np.sort(one, axis=0), np.sort(TABLE[:16], axis=0))
    np.testing.assert_array_equal(one, sample_embedding(cell, 0))
    assert cell.cell_id != cell_of(folder, study(folder)).cell_id


def test_rows_are_centred_then_whitened_then_brought_to_length_1() -> None:
    rows = TABLE + 3
    centred = prepared(rows, 40, centre=True, whiten=False, normalise=False)
    np.testing.assert_allclose(centred.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(centred, rows - rows.mean(axis=0), atol=1e-5)
    white = prepared(rows, 40, centre=False, whiten=True, normalise=False)
    np.testing.assert_allclose(white.T @ white / 40, np.eye(12), atol=1e-4)
    again = prepared(white, 40, centre=False, whiten=True, normalise=False)
    np.testing.assert_allclose(again, white, atol=1e-4)
    unit = prepared(rows, 39, centre=True, whiten=True, normalise=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-5)
    tiny = prepared(TABLE * 1e-4, 40, centre=False, whiten=True, normalise=False)
    plain = prepared(TABLE, 40, centre=False, whiten=True, normalise=False)
    np.testing.assert_allclose(tiny, plain, atol=1e-4)
    assert tiny.dtype == np.float32
    flat = np.column_stack([TABLE[:, :-1], TABLE[:, 0]])
    with pytest.raises(ValueError, match="whiten"):
        prepared(flat, 40, centre=False, whiten=True, normalise=False)
    untouched = prepared(TABLE, 40, centre=False, whiten=False, normalise=False)
    np.testing.assert_array_equal(untouched, TABLE)
    with pytest.raises(ValueError, match="whiten"):
        prepared(TABLE[:11], 11, centre=False, whiten=True, normalise=False)
    with pytest.raises(ValueError, match="normalise: row 2 "):
        prepared(np.diag([1.0, 2, 0, 3]), 4, centre=False, whiten=False, normalise=True)


def test_a_study_names_two_tables_by_their_files_and_prepares_each_as_it_says(
    folder: Path,
) -> None:
    np.save(folder / "w.npy", TABLE[::-1])
    document = study(folder)
    ways: list[dict[str, Any]] = [{}, {"normalise": True}, {"centre": True}, {"whiten": True}]
    given = [{"file": file, **way} for file in ("v.npy", "w.npy") for way in ways]
    document["embedding"] = [{"family": "vectors", **one} for one in given]
    found = parse_study(document, homes=[folder])
    for one, cell in zip(given, found.cells, strict=True):
        rows = (TABLE if one["file"] == "v.npy" else TABLE[::-1])[:16]
        flags = (one.get(way, False) for way in ("centre", "whiten", "normalise"))
        right = prepared(rows, 16, *flags)
        np.testing.assert_allclose(sample_embedding(cell, 0), right, atol=1e-6)
        keys = dict(part.split("=") for part in found.differences[cell.cell_id].split(","))
        assert keys["file"] == one["file"]
        assert {way for way, said in keys.items() if said == "True"} == {*one} - {"file"}


def test_a_table_beside_made_vectors_is_named_by_its_family_and_file_alone(folder: Path) -> None:
    vectors = study(folder)["embedding"]
    document = study(folder) | {"embedding": [{}, vectors, vectors | {"shuffle": True}]}
    found = parse_study(document, homes=[folder])
    added = [{*part.split(",")} for part in found.differences.values()]
    file = {"family=vectors", "file=v.npy"}
    assert added == [{""}, file, file | {"shuffle=True"}]
    stored = found.model_copy(update={"files": {}})
    assert [{*part.split(",")} & {"family=vectors"} for part in stored.differences.values()] == [
        set(),
        {"family=vectors"},
        {"family=vectors"},
    ]


def test_rows_that_do_not_fit_the_items_are_refused(folder: Path) -> None:
    with pytest.raises(StudyError, match=r"embedding.file: .*v.npy: .* 12 numbers"):
        cell_of(folder, study(folder) | {"cells": [{"m": 16, "d_model": 16}]})
    with pytest.raises(StudyError, match="40 rows, and m = 64"):
        cell_of(folder, study(folder) | {"cells": [{"m": 64, "d_model": 12}]})
    (folder / "order.txt").write_text("0\n0\n" + "\n".join(map(str, range(2, 30))))
    with pytest.raises(StudyError, match=r"twice.* 39"):
        cell_of(folder, study(folder, rows="order.txt"))
    (folder / "order.txt").write_text("40\n" + "\n".join(map(str, range(30))))
    with pytest.raises(StudyError, match=r" 39"):
        cell_of(folder, study(folder, rows="order.txt"))
    (folder / "order.txt").write_text("0.5\n" + "\n".join(map(str, range(30))))
    with pytest.raises(StudyError, match=r"order.txt: "):
        cell_of(folder, study(folder, rows="order.txt"))
    with pytest.raises(StudyError, match="tensor: 'emb'"):
        cell_of(folder, study(folder, tensor="emb"))
    with pytest.raises(StudyError, match=r"nowhere.txt"):
        cell_of(folder, study(folder, names="nowhere.txt"))
    (folder / "names.txt").write_text("a\nb\n")
    with pytest.raises(StudyError, match="2 names for 40 rows"):
        cell_of(folder, study(folder, names="names.txt"))
    twice = Vectors(TABLE, ["a", *WORDS[:38], "a"])
    with pytest.raises(ValueError, match="2 rows have the name 'a'"):
        rows_of_items(twice, ["a", "w1"], 2, None)


def test_a_study_takes_the_tensor_that_it_names_and_says_how_many_vectors_it_read(
    folder: Path,
) -> None:
    save_file({"a": TABLE[::-1].copy(), "b": TABLE}, folder / "two.safetensors")
    document = study(folder, file="two.safetensors", tensor="b")
    np.testing.assert_array_equal(sample_embedding(cell_of(folder, document), 0), TABLE[:16])
    (read,) = parse_study(document, homes=[folder]).read
    assert "40" in read
