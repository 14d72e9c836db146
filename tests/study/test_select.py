"""Cells and heads by the names that people give them."""

from __future__ import annotations

import pytest

from rgr_dist.study.errors import StudyError
from rgr_dist.study.select import CellName, cell_named, cells_named, heads_named
from tests.planning.made_up_runs import study_of


def test_a_cell_of_degree_one_is_named_without_it_beside_denser_ones() -> None:
    study = study_of([{"m": 16, "d_model": 4, "graph": {"family": "regular", "degree": [1, 3]}}])
    one, three = study.cells
    assert cell_named(study, "m=16,d_model=4") == one
    assert cell_named(study, "m=16,d_model=4,degree=1") == one
    assert cell_named(study, "degree=3") == three
    assert cells_named(study, "m=16,d_model=4") == [one, three]
    with pytest.raises(StudyError, match=r"^--cell: missing; valid: m=16,d_model=4; m=16,d_mo"):
        cell_named(study, None)
    alone = study_of([{"m": 16, "d_model": 4}])
    assert cell_named(alone, None) == alone.cells[0]
    two = r"m=16,d_model=4; m=16,d_model=4,degree=3$"
    for name, shown in (("m=16", "m=16"), ((16, 4), "16,4"), ({"m": 16}, "m=16")):
        with pytest.raises(StudyError, match=f"^cell {shown}: names 2 cells; name one of {two}"):
            cell_named(study, name)
    assert cells_named(study, "family=regular,model=max,length=16,d_model=4,,") == [one, three]


def test_a_cell_is_found_by_all_that_is_known_of_it() -> None:
    study = study_of([{"m": [16, 32], "d_model": 4}])
    for cell in study.cells:
        known = {"degree": 1, "m": cell.m, "d_model": 4, **study.keys_of(cell)}
        name = ",".join(f"{key.split('.')[-1]}={value}" for key, value in known.items())
        assert cells_named(study, name) == [cell]


def test_cells_and_heads_are_named_as_the_study_names_them() -> None:
    study = study_of([{"m": [16, 32], "d_model": [4, 8]}])
    for cell in study.cells:
        assert cells_named(study, cell.name) == [cell]
        assert cells_named(study, f" d_model={cell.d_model}, m={cell.m}") == [cell]
    assert [cell.d_model for cell in cells_named(study, "m=32")] == [4, 8]
    with pytest.raises(StudyError, match=r"^cell m=9: not in made-up; it has m=16,d_model=4; m=16"):
        cells_named(study, "m=9")
    with pytest.raises(StudyError, match="it has m=16"):
        cells_named(study, " ")
    assert heads_named(study, [8, 1]) == (1, 8)
    with pytest.raises(StudyError, match=r"^h = 3: not in made-up; it has 1, 2, 8$"):
        heads_named(study, [1, 3])


def test_sizes_in_half_a_pair_of_brackets_name_no_cell() -> None:
    for text in ("(32,4", "32,4)", "３２,4"):
        with pytest.raises(StudyError, match=": not in made-up; it has m=32,d_model=4"):
            cell_named(study_of([{"m": 32, "d_model": 4}]), text)


@pytest.mark.parametrize(
    "name",
    ["m=32,d_model=4", "m = 32, d_model = 4", " (32, 4) ", (32, 4), {"m": 32, "d_model": 4}],
)
def test_a_cell_is_named_by_text_a_pair_or_a_mapping(name: CellName) -> None:
    study = study_of([{"m": [16, 32], "d_model": [4, 8]}])
    cell = cell_named(study, name)
    assert (cell.m, cell.d_model) == (32, 4)
