"""The forms that D_K* may have on the log scale, and which of them coincide in given cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.interval_likelihood import Array


@dataclass(frozen=True)
class Form:
    """A candidate's form: log D_K* = offset(cell) + Σ coefficients · columns(cell) (+ k's term).

    Attributes:
        formula: as text, with c and the other unknowns in the order of ``unknowns``; k adds
            log(1 + k · m′/d_model).
        offset: the part of log D_K* without unknowns.
        columns: the logarithms whose exponents are unknown, in addition to the constant log c.
    """

    name: str
    formula: str
    unknowns: tuple[str, ...]
    offset: Callable[[pd.DataFrame], Array] = lambda cells: np.zeros(len(cells))
    columns: Callable[[pd.DataFrame], list[Array]] = lambda cells: []

    @property
    def has_k(self) -> bool:
        """Whether k is one of its unknowns."""
        return "k" in self.unknowns

    def design(self, cells: pd.DataFrame) -> Array:
        """A column of ones and those with unknown exponents, shape (n, p)."""
        return np.column_stack([np.ones(len(cells)), *self.columns(cells)])

    def offset_at(self, cells: pd.DataFrame, k: float | Array) -> Array:
        """The part of log D_K* without a coefficient, at one k, or at many of shape (…, 1)."""
        return self.offset(cells) + np.log1p(k * np.exp(log_load(cells)))


def log_load(cells: pd.DataFrame) -> Array:
    """log m′/d_model."""
    m_edges, d_model = (cells[name].to_numpy(dtype=np.float64) for name in ("n_edges", "d_model"))
    return np.asarray(np.log(m_edges / d_model))


def _log_m(cells: pd.DataFrame) -> Array:
    return np.asarray(np.log(np.log2(cells["m"].to_numpy(dtype=np.float64))))


def _bits(cells: pd.DataFrame) -> Array:
    m, edges = (cells[name].to_numpy(dtype=np.float64) for name in ("m", "n_edges"))
    return np.asarray(np.log(np.maximum(np.log2(m**2 / edges), 1e-12)))


FORMS = (
    Form("m/d", "c · m′/d_model", ("c",), log_load),
    Form("m log m/d", "c · m′ log₂ m / d_model", ("c",), lambda c: log_load(c) + _log_m(c)),
    Form("m log² m/d", "c · m′ (log₂ m)² / d_model", ("c",), lambda c: log_load(c) + 2 * _log_m(c)),
    Form("entropy", "c · m′ log₂(m²/m′) / d_model", ("c",), lambda c: log_load(c) + _bits(c)),
    Form("(m/d)^a", "c · (m′/d_model)^a", ("c", "a"), columns=lambda c: [log_load(c)]),
    Form(
        "(m log m/d)^a", "c · (m′ log₂ m / d_model)^a", ("c", "a"),
        columns=lambda c: [log_load(c) + _log_m(c)],
    ),
    Form(
        "m log m/d (1 + k m/d)", "c · m′ log₂ m / d_model · (1 + k · m′/d_model)", ("c", "k"),
        lambda c: log_load(c) + _log_m(c),
    ),
    Form(
        "(m/d)^a (log m)^b", "c · (m′/d_model)^a (log₂ m)^b", ("c", "a", "b"),
        columns=lambda c: [log_load(c), _log_m(c)],
    ),
    Form(
        "m^a d^b", "c · m′^a d_model^b", ("c", "a", "b"),
        columns=lambda c: [np.log(c[name].to_numpy(float)) for name in ("n_edges", "d_model")],
    ),
)  # fmt: skip


def holds(form: Form, other: Form, cells: pd.DataFrame) -> bool:
    """Whether a form contains the other in these cells, as a special case or as the same law."""
    if other.has_k:
        return form is other
    own = form.design(cells)
    theirs = [other.design(cells), other.offset(cells) - form.offset(cells)]
    both = np.column_stack([own, *theirs])
    return bool(np.linalg.matrix_rank(both, tol=1e-6) == np.linalg.matrix_rank(own, tol=1e-6))


def is_identified(form: Form, cells: pd.DataFrame) -> bool:
    """Whether the terms of a form vary independently of each other in these cells."""
    design = form.design(cells)
    if form.has_k:
        design = np.column_stack([design, log_load(cells)])
    centred = design - design.mean(axis=0)
    centred[:, 0] = 1.0
    return bool(np.linalg.matrix_rank(centred, tol=1e-6) == design.shape[1])
