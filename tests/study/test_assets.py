"""Arrays from files: their address is their content, and a missing one is told."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rgr_dist.study import assets
from rgr_dist.study.cell import Cell

KINDS = st.sampled_from([np.int32, np.int64, np.float32, np.float64])


@given(data=st.data())
def test_what_is_added_comes_back_and_the_address_is_the_content(data: st.DataObject) -> None:
    shapes = arrays.array_shapes(max_dims=2, max_side=4)
    one, other = (data.draw(arrays.arrays(data.draw(KINDS), shapes)) for _ in range(2))
    same = one.dtype == other.dtype and one.shape == other.shape
    same = same and one.tobytes() == other.tobytes()
    assert (assets.add(one) == assets.add(other)) == same
    kept = assets.get(assets.add(one))
    np.testing.assert_array_equal(kept, one)
    assert kept.dtype == one.dtype


def test_the_address_depends_on_neither_memory_order_nor_byte_order() -> None:
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    digest = assets.add(a)
    assert digest == assets.add(np.asfortranarray(a)) == assets.add(a.astype(">i4"))
    assert len(digest) == 64
    assert set(digest) <= set("0123456789abcdef")


def test_what_is_kept_is_a_copy_that_cannot_be_changed() -> None:
    a = np.zeros(3)
    digest = assets.add(a)
    a[0] = 1.0
    assert assets.get(digest).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        assets.get(digest)[0] = 1.0


def test_an_array_that_is_not_loaded_is_told() -> None:
    told = "read the study file that brings it, or hand it over with the cell"
    with pytest.raises(assets.AssetError, match=f"^the array 0{{12}} is not loaded: {told}$"):
        assets.get("0" * 64)
    with pytest.raises(TypeError, match=r"^an array of object has no content of its own; give n"):
        assets.add(np.array([{}]))


def test_a_cell_needs_what_its_parts_name_and_takes_it_over() -> None:
    a, b = np.arange(3), np.ones((2, 2))
    cell = Cell(m=16, d_model=2)
    from_files = cell.model_copy(
        update={
            "graph": SimpleNamespace(digest=assets.add(a)),
            "embedding": SimpleNamespace(digest=assets.add(b)),
        }
    )
    assert assets.needed([cell]) == {}
    arrays = assets.needed([cell, from_files, from_files])
    assert list(arrays) == [assets.add(a), assets.add(b)]
    assets.take({"f" * 64: a})
    assert assets.get("f" * 64) is a
