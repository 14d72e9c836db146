"""What a study file may say, and how that becomes the cells and the search of a ``Study``.

Every key that is left out takes the paper's value, and an unknown key is an error.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from pydantic import Field, StrictStr, model_validator

from rgr_dist.study.cell import Cell, cell_type
from rgr_dist.study.check_search import check_search
from rgr_dist.study.construction import ConstructionModel
from rgr_dist.study.errors import StudyError, as_written, reading, validated, within
from rgr_dist.study.files import EdgesFile, Loaded, TriplesFile, VectorsFile
from rgr_dist.study.layer import HOW
from rgr_dist.study.layer_file import load_layer, zoo
from rgr_dist.study.models import MODELS, Model, construction_name
from rgr_dist.study.search import Search
from rgr_dist.study.spec import OneOrMore, Spec, nearest
from rgr_dist.study.study import Study
from rgr_dist.study.vectors import Vectors
from rgr_dist.study.yaml_document import plain, read_document, shipped_studies

Keys = dict[Any, Any]
Files = dict[str, dict[str, Any]]
"""The keys of a study that name an array's files, by the array's digest."""

CELL_PARTS = ("context", "training", "graph")
"""Parts that an entry of ``cells`` may override key by key."""
ROOM_PARTS = {part for one in MODELS.values() if one.room for part in one.room.parts}
"""Keys of a study that only some model with a room of its own has."""
MOST_KEYS = 100
"""A part with more keys than this has unknown ones: it is refused, its lists not expanded."""
MOST_CELLS = 1_000
"""Cells of the largest study."""
MOST_LIMITS = 100
"""Step limits of one cell: its searches at each of them follow one another."""


class _WithParts(Spec):
    """Keys of a study, with those that only one model knows apart.

    Attributes:
        parts: by their names, those of ``ROOM_PARTS``.
    """

    parts: dict[str, Keys] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, keys: Any) -> Any:
        if not isinstance(keys, dict):
            return keys
        own = {key: keys[key] for key in keys if key in ROOM_PARTS}
        return {key: keys[key] for key in keys if key not in own} | {"parts": own}


class CellItem(_WithParts):
    """One entry of ``cells``: lists of m and d_model, and what this entry overrides.

    Attributes:
        m: number of items, or a list of numbers. May be left out for an edge list in which every
            item occurs: the items are then counted.
        d_model: width of the items' embedding, or a list of widths.
        context: keys of ``context`` that these cells override.
        training: keys of ``training`` that these cells override.
        graph: keys of ``graph`` that these cells override, or another family.
    """

    m: OneOrMore = ()
    d_model: OneOrMore
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    graph: Keys = Field(default_factory=dict)


class StudyFile(_WithParts):
    """A study file as written, before its cells are expanded.

    Attributes:
        name: name of the study, and of its folder in the store.
        model: what is trained: the name of a model, the keys of a construction, or a layer, by its
            file (``mine.py``, ``{file: mine.py, groups: 2}``) or by its name in the zoo (``{zoo:
            grouped, groups: 2}``). It may also be a list of models that hold edges: each is then
            trained on every cell with the same ``training``, whose defaults are those of the first.
            In mode grid the list may end with constructions.
        graph: the relations among the items.
        embedding: the vectors of the items.
        context: how contexts are drawn.
        training: how a run is trained, and when it stops.
        cells: what is measured: the sizes, and what some of them override.
        search: which widths are tried, and what counts as a pass.
    """

    name: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    model: Any = "max"
    graph: Keys = Field(default_factory=dict)
    embedding: Keys = Field(default_factory=dict)
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    cells: Annotated[tuple[CellItem, ...], Field(min_length=1)]
    search: Search = Search()

    def merged(self, part: str, item: CellItem) -> Keys:
        """A part with an entry's own keys; if they name another family, they stand alone."""
        common, own = (
            one.parts.get(part, {}) if part in ROOM_PARTS else getattr(one, part)
            for one in (self, item)
        )
        families = {str(keys["family"]) for keys in (common, own) if "family" in keys}
        return dict(own) if len(families) > 1 else {**common, **own}


def load_study(source: str, overrides: Sequence[str] = ()) -> Study:
    """Load a shipped study by name, or a study file by path, with ``a.b=c`` overrides.

    Raises:
        StudyError: the source is unknown or unreadable, or the study is not valid.
    """
    home = Path() if source in shipped_studies() else Path(source).parent
    return parse_study(read_document(source, overrides), source, home)


def parse_study(
    document: Mapping[str, Any], where: str = "study", home: Path | None = None
) -> Study:
    """Validate a study document, expand its cells, and load the files that it names.

    Args:
        home: the folder that paths in the document are relative to; the current one by default.

    Raises:
        StudyError: naming the key, where it is and what would be valid.
    """
    with within(f"{where}: "):
        keys = plain(document)
        made = _Expansion(validated(StudyFile, keys), home or Path()).study()
        return made.model_copy(update={"document": keys})


class _Expansion:
    """A study file on its way to a study: expands its cells, and loads the files it names."""

    def __init__(self, written: StudyFile, home: Path) -> None:
        self.written, self.home = written, home
        self.files: Files = {}
        self.models = self._models()
        self.record: Model = MODELS[self.models[0]["model"]]
        self.names: dict[str, list[str]] = {}
        self.table: tuple[VectorsFile, tuple[Vectors, list[int] | None]] | None = None
        if written.embedding.get("family") == "vectors":
            found = validated(VectorsFile, written.embedding, "embedding.")
            with within("embedding.file: "):
                self.table = found, found.read(home)

    def _models(self) -> list[Keys]:
        """The models of a study: any that are trained, all alike, come before constructions.

        Raises:
            StudyError: the models do not go together, or not in this mode.
        """
        listed = self.written.model
        if not isinstance(listed, list):
            return [self._model(listed)]
        if not listed:
            raise StudyError("model: an empty list; name one, such as max")
        _check_number(len(listed))  # each has a cell, or more
        models = [self._model(one, f"model[{i}]") for i, one in enumerate(listed)]
        names = [one["layer"].shown if "layer" in one else one["model"] for one in models]
        for i, one in enumerate(models):
            if names[i] in names[:i]:
                raise StudyError(f"model[{i}]: {names[i]} is listed twice; list each once")
            if len(models) > 1 and MODELS[one["model"]].loss != "edges":
                raise StudyError(f"model[{i}]: {names[i]} holds no edges; list those that do")
            is_made = i > 0 and "construction" in one
            if is_made and self.written.search.mode != "grid":
                raise StudyError(
                    f"model[{i}]: {names[i]} is made, not trained; list it with search.mode: grid"
                )
            if i > 0 and not is_made and "construction" in models[i - 1]:
                raise StudyError(f"model[{i}]: {names[i]} is trained; list it before constructions")
        return models

    def _model(self, written: Any, place: str = "model") -> Keys:
        """The model of cells: a name, or a mapping that names a construction or a layer."""
        if isinstance(written, str) and written.endswith(".py"):
            written = {"file": written}
        elif written in ({"zoo": "max"}, {"zoo": "softmax"}):
            written = written["zoo"]  # the paper's layers have one address
        if not isinstance(written, Mapping):
            if not isinstance(written, str) or written not in MODELS:
                known = nearest(written, [name for name in MODELS if name != "file"])
                near = difflib.get_close_matches(str(written), zoo(), 1, cutoff=0.7)
                how = HOW.replace("NAME", near[0]) if near else HOW
                raise StudyError(f"{place}: {as_written(written)} is not known; {known}; {how}")
            return {"model": written}
        if written in ({"zoo": "max"}, {"zoo": "softmax"}):
            return {"model": written["zoo"]}
        if not {"file", "zoo"}.isdisjoint(written):
            layer, named = load_layer(written, self.home)
            self.files[layer.digest] = named
            return {"model": "file", "layer": layer}
        if "construction" not in written:
            valid = nearest(next(iter(written), ""), ["construction", "file", "zoo"])
            raise StudyError(
                f"{place}: {as_written(written)} has no key that names a model; {valid}"
            )
        chosen = validated(ConstructionModel, written, f"{place}.")
        return {"model": construction_name(chosen.construction), "construction": chosen.options}

    def study(self) -> Study:
        """The study with all its cells."""
        own = [model for model in self.models[1:] if "construction" not in model]
        cells: list[Cell] = []
        for model in (self.models[0], *own):
            cells += self._cells(model)
            _check_number(len(cells))
        beside = map(self._cells, self.models[1 + len(own) :])
        twice = next((cell for cell, times in Counter(cells).items() if times > 1), None)
        if twice is not None:
            raise StudyError(f"cells: {twice.name} is listed twice; list each cell once")
        search = self.written.search
        cells += dict.fromkeys(itertools.chain(*beside))  # one cell serves all step limits
        for cell in cells:
            check_search(cell, search)
        if self.record.target is not None and "target" not in search.model_fields_set:
            search = search.model_copy(update={"target": self.record.target})
        made = Study(name=self.written.name, cells=tuple(cells), search=search, files=self.files)
        limits = max(map(len, made.budgets.values()))
        if limits > MOST_LIMITS:
            raise StudyError(
                f"training.max_steps: {limits} step limits of one cell; give it at most "
                f"{MOST_LIMITS}"
            )
        return made

    def _cells(self, model: Keys) -> list[Cell]:
        """The cells of every entry for one model."""
        cells: list[Cell] = []
        for index in range(len(self.written.cells)):
            cells += self._cells_of(index, model)
            _check_number(len(cells))
        return cells

    def _cells_of(self, index: int, model: Keys) -> list[Cell]:
        """The cells of an entry for one model: every combination of its lists."""
        written, item = self.written, self.written.cells[index]
        here = f"cells[{index}]."
        own = [part for part in CELL_PARTS if getattr(item, part)]
        places = dict.fromkeys(("m", "d_model", *own, *item.parts), here)
        training = {**self.record.training, **written.training, **item.training}
        if "construction" in model and model is not self.models[0]:
            unused = MODELS[model["model"]].unused_keys
            training = {key: training[key] for key in training if f"training.{key}" not in unused}
        if isinstance(limits := training.get("max_steps"), list):
            training["max_steps"] = sorted(limits, key=lambda one: one if type(one) is int else 0)
        graphs = self._graphs(item, places)
        lists = (
            self._problems(item, places, graphs),
            item.d_model,
            graphs,
            _each(training, ["learning_rate", "max_steps"]),
        )
        _check_number(math.prod(map(len, lists)))
        return [
            validated(
                cell_type(self.record.name),
                {
                    **model,
                    **problem,
                    "graph": graph,
                    "d_model": d_model,
                    "embedding": self._embedding(graph, problem.get("m", 0), d_model),
                    "context": {**written.context, **item.context},
                    "training": keys,
                },
                places,
            ).canonical()
            for problem, d_model, graph, keys in itertools.product(*lists)
        ]

    def _problems(
        self, item: CellItem, places: Mapping[str, str], graphs: Sequence[Keys]
    ) -> list[Keys]:
        """What a layer is to hold: m items, or what a model with a room of its own takes."""
        room = self.record.room
        unknown = {*self.written.parts, *item.parts}.difference(room.parts if room else ())
        for part in sorted(unknown):
            raise StudyError(
                f"{places.get(part, '')}{part}: model {self.record.name} does not use it; "
                "leave it out"
            )
        m: Sequence[int] = item.m
        if room is not None:
            written = {part: self.written.merged(part, item) for part in room.parts}
            found = resolve_name(room.problems)(written, places, self._loaded)
            return [{**one, "m": given} for one in found for given in m] if m else list(found)
        if not m and graphs[0].get("family") == "edges":
            m = [graphs[0]["items"]]
        return [{"m": one} for one in m] or [{}]

    def _graphs(self, item: CellItem, places: Mapping[str, str]) -> list[Keys]:
        """One graph for each listed degree, or the graph of a file, with its edges loaded."""
        keys, place = self.written.merged("graph", item), places.get("graph", "")
        if keys.get("family") != "edges":
            return _each(keys, ["degree"])
        return [self._loaded(EdgesFile, keys, f"{place}graph.")]

    def _loaded(self, spec: type[EdgesFile] | type[TriplesFile], keys: Keys, place: str) -> Keys:
        """A part of a cell whose file is loaded."""
        written = validated(spec, keys, place)
        path = self.home / written.file
        with within(f"{place}file: "), reading(path):
            return self._kept(written.load(path), path)

    def _kept(self, loaded: Loaded, path: Path) -> Keys:
        """The keys of what a file holds; where it was and what was read are remembered."""
        digest = loaded.keys["digest"]
        self.names[digest] = loaded.names
        told = f"{path.name}: {loaded.told}"
        self.files[digest] = {"file": str(path.absolute()), "read": told}
        return loaded.keys

    def _embedding(self, graph: Keys, m: int, d_model: int) -> Keys:
        """The embedding of a cell; if it is from a file, its rows are loaded."""
        if self.table is None:
            return self.written.embedding
        written, table = self.table
        path, has_null = self.home / written.file, self.record.task == "matching"
        items = self.names.get(graph.get("digest", ""))
        with within("embedding.file: "), reading(path):
            return self._kept(written.load(table, m, d_model, items, has_null), path)


def _each(keys: Keys, names: Sequence[str] | None = None) -> list[Keys]:
    """A copy of the keys for every combination of the values that they list.

    Args:
        names: the keys that may list several values; all if not given.
    """
    if len(keys) > MOST_KEYS:
        return [keys]
    lists = {
        name: value
        for name, value in keys.items()
        if isinstance(value, list) and value and (names is None or name in names)
    }
    _check_number(math.prod(map(len, lists.values())))
    combinations = itertools.product(*lists.values())
    return [{**keys, **dict(zip(lists, values, strict=True))} for values in combinations]


def _check_number(cells: int) -> None:
    """Make sure that a study does not have too many cells, before they are made."""
    if cells > MOST_CELLS:
        raise StudyError(f"cells: {cells:,} or more; list at most {MOST_CELLS:,} in one study")
