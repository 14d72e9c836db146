"""The published numbers agree with each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rgr_dist import paper

SIZES = st.integers(2, 4096)


@given(m=SIZES, d_model=SIZES)
def test_a_permutation_has_as_many_edges_as_items(m: int, d_model: int) -> None:
    for scale in (paper.capacity_scale, paper.compression):
        assert scale(m, d_model) == scale(m, d_model, m)


def test_the_predictors_of_known_cells() -> None:
    assert paper.capacity_scale(64, 16) == 64 * 6 / 16
    assert paper.capacity_scale(128, 32, 4 * 128) == 4 * 128 * 7 / 32
    assert paper.compression(128, 32, 4 * 128) == 16


@given(whole=SIZES, d_model=SIZES, octaves=st.integers(1, 12))
def test_a_scale_that_is_whole_is_exact(whole: int, d_model: int, octaves: int) -> None:
    """The widest probe of a search is its floor: an error in the last digit would cost a width."""
    assert paper.capacity_scale(2**octaves, d_model, whole * d_model) == whole * octaves


def test_the_second_fit_leaves_out_the_narrow_cells_of_the_base_grid() -> None:
    narrow = [place for place in paper.IMPLIED if paper.is_narrow(*place)]
    assert narrow == [(128, 16), (256, 16), (512, 16)]


def test_the_implied_thresholds_are_table_1_times_a_power_of_two() -> None:
    assert paper.IMPLIED.keys() == paper.TABLE_1_D_K_OF_A_HEAD.keys()
    for place, (D_K, h) in paper.IMPLIED.items():
        assert paper.TABLE_1_D_K_OF_A_HEAD[place] * h == D_K
        assert h & (h - 1) == 0


def test_table_1_has_the_printed_range() -> None:
    widths = sorted(paper.TABLE_1_D_K_OF_A_HEAD.values())
    assert (widths[0], widths[-1]) == (5, 24)
