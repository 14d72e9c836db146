"""A study as an object, for Python and notebooks: run it, and get what it found as DataFrames."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from rgr_dist.analysis.wording import plural
from rgr_dist.answers import Answer, Curves, Explanation, as_html
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.select import CellName, cell_named, heads_named
from rgr_dist.study.study import Study as Resolved
from rgr_dist.study.study_file import parse_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from rgr_dist.analysis.load import StudyResults


def load(
    source: str | Path, overrides: str | Sequence[str] = (), store: Store | str | Path = "results"
) -> Study:
    """A shipped study by its name, or a study file by its path, with the store of its runs.

    Args:
        overrides: one or several ``key=value`` as after ``--set``: ``["search.seeds=3"]``.
        store: a folder, or a URI that pyarrow opens. Loading writes nothing to it.

    Raises:
        StudyError: the study is unknown, unreadable or not valid.
        StoreError: the store cannot be opened.
    """
    given, opened = [overrides] if isinstance(overrides, str) else [*overrides], _opened(store)
    return Study.of(opened.study(str(source), given), opened)


def run(
    study: str | Path | Study,
    overrides: str | Sequence[str] = (),
    store: Store | str | Path | None = None,
    **how: Any,
) -> Study:
    """Train the runs that a study still lacks, then return the study.

    Args:
        study: a name, a path, or a study.
        overrides, store: as in ``load``; the store is by default a study's own.
        how: as for ``Study.run``.

    Raises:
        StudyError, StoreError, ClusterError: the study, its store or its Ray cannot be used.
    """
    if not isinstance(study, Study):
        study = load(study, overrides, store or "results")
    elif store is not None:
        study = Study.of(study.study, _opened(store))
    return study.run(**how)


def compare(one: str | Path | Study, other: str | Path | Study) -> Answer:
    """How the second study differs from the first, cell by cell.

    Args:
        one, other: studies, or names or paths of studies whose runs are in ``results``.

    Raises:
        StudyError: the two measure different things, or have no cell in common.
    """
    from rgr_dist.analysis.compare import Side, sentence
    from rgr_dist.analysis.compare import compare as compared

    pair = [study if isinstance(study, Study) else load(study) for study in (one, other)]
    names = [study.name for study in pair]
    if names[0] == names[1]:
        names = [f"{study.name} in {study.store.root}" for study in pair]
    table = compared(
        [Side(name, each._results, each.cells) for name, each in zip(names, pair, strict=True)]
    )
    return Answer([sentence(table)], table)


def _opened(store: Store | str | Path) -> Store:
    return store if isinstance(store, Store) else Store(store)


class Study:
    """A study and the store of its runs. Tables are read on first use.

    A method that is given a cell or a head count that the study lacks raises StudyError, as do the
    laws and predictions of a study that finds no D_K*.

        rgr.Study(name="mine", cells=[{"m": 100, "d_model": 20}], search={"heads": [1, 2, 4]})

    Attributes:
        study: the resolved study.
        store: its store.

    Args:
        document: the keys of a study file, checked just as a file's keys are.
        store: a folder, or a URI that pyarrow opens.
        keys: further keys, which take precedence over those of ``document``.

    Raises:
        StudyError: a key is unknown or not valid; the message says what would be valid.
    """

    def __init__(
        self,
        document: Mapping[str, Any] | None = None,
        /,
        *,
        store: Store | str | Path = "results",
        **keys: Any,
    ) -> None:
        if not isinstance(document, Mapping | None):
            raise StudyError(f"{document}: not the keys of a study; rgr.load reads a study's file")
        self.study = parse_study({**(document or {}), **keys})
        self.store = _opened(store)

    @classmethod
    def of(cls, study: Resolved, store: Store) -> Self:
        """A resolved study with a store."""
        opened = cls.__new__(cls)
        opened.study, opened.store = study, store
        return opened

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.name

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The study's cells."""
        return self.study.cells

    def __repr__(self) -> str:
        cells = plural(len(self.cells), "cell")
        return f"<study {self.name}: {cells}, stored in {self.store.root}>"

    def _repr_html_(self) -> str:
        return as_html([repr(self)], self.best())

    def run(
        self,
        cpus: int | None = None,
        address: str | None = None,
        engine: str = "auto",
        gpus: float = 0.0,
        show: bool = True,
    ) -> Self:
        """Train the runs that are missing.

        Args:
            cpus, address, engine, gpus: as for ``Execution``.
            show: draw the brackets as they close, then print what was found.
        """
        from rich.console import Console

        from rgr_dist.live import LiveView
        from rgr_dist.running.cluster import Execution
        from rgr_dist.running.run_study import run_study

        execution = Execution(cpus, address or Execution().address, engine, gpus)
        try:
            with LiveView(Console(file=sys.stdout)) if show else nullcontext() as view:
                run_study(self.study, self.store, view, execution)
        finally:
            self.__dict__.pop("_results", None)  # runs stored since are read
        if show:
            from rgr_dist.analysis.report import headline

            print(headline(self._results))
        return self

    def _warn(self) -> None:
        """Warn of parts and runs that were left out when the store was read."""
        for line in self.store.left_out:
            warnings.warn(line, stacklevel=3)

    @cached_property
    def _results(self) -> StudyResults:
        from rgr_dist.analysis.load import open_results

        results = open_results(self.study, self.store)
        self._warn()
        return results

    def thresholds(self) -> pd.DataFrame:
        """The threshold of every (cell, h): the columns of ``rgr thresholds --format json``."""
        from rgr_dist.analysis.tables import THRESHOLD, listed, thresholds

        return listed(thresholds(self._results), THRESHOLD, self.study)

    def best(self) -> pd.DataFrame:
        """The best of every cell: the list ``best`` of ``rgr thresholds --format json``."""
        from rgr_dist.analysis.tables import BEST, best, listed

        return listed(best(self._results), BEST, self.study)

    def to_yaml(self) -> str:
        """The keys of the study file, with what overrides changed."""
        return self.study.to_yaml()

    def explain(self, cell: CellName | None = None, h: int | Sequence[int] = ()) -> Explanation:
        """Every decision behind a cell's thresholds.

        Args:
            cell: as in ``curves``; may be left out if the study has only one.
            h: a head count or several; all if not given.

        """
        from rgr_dist.planning.explain import explain_cell

        chosen = cell_named(self.study, cell)
        sections, facts = explain_cell(self.study, chosen, self.store, self._heads(h))
        self._warn()
        return Explanation(sections, facts)

    def predict(self, m: int, d_model: int, edges: int | None = None) -> pd.DataFrame:
        """D_K, h and d_k for other sizes: the ``predictions`` of ``rgr fit --at … --format json``.

        Args:
            edges: number of relations m′; m if not given.
        """
        from rgr_dist.analysis.growth import predictions

        self._check_finds_D_K()
        sizes = {"m": [m], "d_model": [d_model], "n_edges": [m if edges is None else edges]}
        return predictions(self._results, pd.DataFrame(sizes))

    def _check_finds_D_K(self) -> None:
        if self.study.record.finds != "D_K":
            raise StudyError(f"{self.name}: only studies of thresholds D_K have laws and predict")

    def _heads(self, h: int | Sequence[int]) -> tuple[int, ...]:
        heads = np.atleast_1d(np.asarray(h))
        if heads.size and heads.dtype.kind not in "iu":
            raise StudyError(f"h: {h!r} is no integer; give a head count or several")
        return heads_named(self.study, heads.astype(int).tolist())

    def runs(self) -> pd.DataFrame:
        """The study's runs, one row each: the columns of ``rgr runs --format json``.

        A probe may have run fewer than all seeds, where those were enough for its verdict or for a
        first look: a mean over them is biased. ``curves().table`` says which means are complete.
        """
        from rgr_dist.planning.listing import run_keys, run_rows

        rows, _ = run_rows(self.study, self.store)
        self._warn()
        return pd.DataFrame(rows, columns=["study", "cell", *run_keys(self.study)])

    def fit(self) -> Answer:
        """The scaling laws fitted to the thresholds."""
        from rgr_dist.analysis.findings import noise_sentence, which_law
        from rgr_dist.analysis.growth import laws

        self._check_finds_D_K()
        said = (noise_sentence(self._results), which_law(self._results))
        return Answer([line for line in said if line], laws(self._results))

    def curves(self, h: int | Sequence[int] = (), cell: CellName | None = None) -> Curves:
        """Mean score of every probe against D_K.

        Args:
            h: a head count or several; all if not given.
            cell: one cell, as ``(64, 16)``, ``"m=64,d_model=16"`` or ``{"m": 64, "d_model": 16}``;
                all if not given.
        """
        heads = self._heads(h)
        chosen = None if cell is None else cell_named(self.study, cell)
        from rgr_dist.analysis.probes import probes

        table = probes(self._results)
        if heads:
            table = table[table["h"].isin(heads)]
        if chosen is not None:
            table = table[table["cell_id"] == chosen.cell_id]
        return Curves(table.reset_index(drop=True), self.study)

    def figures(self) -> list[str]:
        """The names of the figures of the study's report."""
        from rgr_dist.analysis.report import figures

        return [*figures(self._results)]

    def figure(
        self, name: str, ax: Axes | Sequence[Axes] | None = None, width: float | None = None
    ) -> Canvas:
        """A figure of the report, drawn by matplotlib; ``.savefig("law.pdf")`` saves it.

        Args:
            name: one of ``figures()``.
            ax: axes to draw into, one for each panel; a new figure if none are given.
            width: of the new figure, in inches; by default a paper's column, or two.
        """
        from rgr_dist.analysis.report import figures_named

        return figures_named(self._results, [name])[0].canvas(width, ax)

    def report(self) -> str:
        """Write the report into the store; returns the address of its page."""
        from rgr_dist.analysis.report import publish

        return publish(self._results, self.store)
