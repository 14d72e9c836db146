"""What a study file may say, and how that becomes the cells and the search of a ``Study``.

Every key that is left out takes the paper's value, and an unknown key is an error.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr, model_validator

from rgr_dist.study.cell import Cell, cell_type
from rgr_dist.study.check_search import check_search
from rgr_dist.study.construction import ConstructionModel
from rgr_dist.study.errors import StudyError, as_written, reading, validated, within
from rgr_dist.study.files import EdgesFile, Loaded, Tables, VectorsFile
from rgr_dist.study.layer import HOW
from rgr_dist.study.layer_file import load_layer, zoo
from rgr_dist.study.models import MODELS, ROOM_PARTS, Model, construction_name
from rgr_dist.study.search import Search
from rgr_dist.study.spec import OneOrMore, Spec, listed, nearest
from rgr_dist.study.study import Study
from rgr_dist.study.yaml_document import STUDIES, plain, read_document, shipped_studies

Keys = dict[Any, Any]
Listed = Annotated[tuple[Keys, ...], BeforeValidator(listed)]
"""Keys of a part, or a list of such."""


class _WithParts(Spec):
    """Keys of a study, with those that only one model knows, ``ROOM_PARTS``, apart."""

    parts: dict[str, Keys] = Field(default_factory=dict, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, keys: Any) -> Any:
        if not isinstance(keys, dict):
            return keys
        own = {key: keys[key] for key in keys if key in ROOM_PARTS}
        return {key: keys[key] for key in keys if key not in own} | {"parts": own}

    @property
    def written(self) -> dict[str, Any]:
        """The parts that it has keys of, by their names."""
        parts = {
            part: getattr(self, part) for part in ("graph", "embedding", "context", "training")
        }
        return {part: keys for part, keys in (parts | self.parts).items() if keys}


class CellItem(_WithParts):
    """One entry of ``cells``: lists of m and d_model, and what this entry overrides.

    Attributes:
        m: number of items, or a list of numbers. May be left out for an edge list in which every
            item occurs: the items are then counted.
        d_model: width of the items' embedding, or a list of widths.
        context: keys of ``context`` that these cells override.
        training: keys of ``training`` that these cells override.
        graph: keys of ``graph`` that these cells override, or another family.
        embedding: keys of ``embedding`` that these cells override, or another family. A list makes
            cells for each of its entries.
    """

    m: OneOrMore = ()
    d_model: OneOrMore
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    graph: Keys = Field(default_factory=dict)
    embedding: Listed = ()


class StudyFile(_WithParts):
    """A study file as written, before its cells are expanded.

    Attributes:
        name: name of the study, and of its folder in the store.
        model: what is trained: the name of a model, the keys of a construction, or a layer, by its
            file (``mine.py``, ``{file: mine.py, groups: 2}``) or by its name in the zoo (``{zoo:
            grouped, groups: 2}``). It may also be a list of models that hold edges: each is then
            trained on every cell with those keys of ``training`` that it has, whose defaults are
            those of the first. The list may end with constructions.
        graph: the relations among the items.
        embedding: the vectors of the items; or a list, which makes cells for each of its entries.
        context: how contexts are drawn.
        training: how a run is trained, and when it stops.
        cells: what is measured: the sizes, and what some of them override.
        search: which widths are tried, and what counts as a pass.
    """

    name: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    model: Any = "max"
    graph: Keys = Field(default_factory=dict)
    embedding: Listed = ()
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    cells: Annotated[tuple[CellItem, ...], Field(min_length=1)]
    search: Search = Search()


def load_study(source: str, overrides: Sequence[str] = ()) -> Study:
    """Load a shipped study by name, or a study file by path, with ``a.b=c`` overrides.

    A file that a shipped study names lies beside it, or in the current folder.

    Raises:
        StudyError: the source is unknown or unreadable, or the study is not valid.
    """
    homes = (STUDIES, Path()) if source in shipped_studies() else (Path(source).parent,)
    return parse_study(read_document(source, overrides), source, homes)


def parse_study(
    document: Mapping[str, Any], where: str = "study", homes: Sequence[Path] = (Path(),)
) -> Study:
    """Validate a study document, expand its cells, and load the files that it names.

    Args:
        homes: the folders that paths in the document may be relative to; the current one by
            default. A file that is in none of them should be in the last.

    Raises:
        StudyError: naming the key, where it is and what would be valid.
    """
    with within(f"{where}: "):
        keys = plain(document)
        made = _Expansion(validated(StudyFile, keys), homes).study()
        return made.model_copy(update={"document": keys})


class _Expansion:
    """A study file on its way to a study: expands its cells, and loads the files it names."""

    def __init__(self, written: StudyFile, homes: Sequence[Path]) -> None:
        self.written, self.homes = written, homes
        self.files: dict[str, dict[str, Any]] = {}
        self.names: dict[str, list[str]] = {}
        self.tables: Tables = {}
        self.models = self._models()
        self.records = [MODELS[one["model"]] for one in self.models]
        self._check_keys("", written.written)
        for index, item in enumerate(written.cells):
            self._check_keys(f"cells[{index}].", item.written)

    def _models(self) -> list[Keys]:
        """The models of a study: any that are trained come before constructions.

        Raises:
            StudyError: the models do not go together, or not in this mode.
        """
        every = listed(self.written.model)
        if len(every) == 1:
            return [self._model(every[0], "model")]
        models = [self._model(one, f"model[{i}]") for i, one in enumerate(every)]
        if not models:
            raise StudyError("model: an empty list; name one, such as max")
        are_made = ["construction" in one for one in models]
        if sorted(are_made) != are_made:
            raise StudyError("model: list constructions after what is trained")
        for i, one in enumerate(models):
            if MODELS[one["model"]].loss != "edges":
                raise StudyError(f"model[{i}]: {one['model']} holds no edges; list those that do")
        return models

    def _model(self, written: Any, place: str) -> Keys:
        """The model of cells: a name, or a mapping that names a construction or a layer."""
        if isinstance(written, str) and written.endswith(".py"):
            written = {"file": written}
        if written in ({"zoo": "max"}, {"zoo": "softmax"}):
            written = written["zoo"]  # the paper's layers have one address
        names = [name for name in MODELS if name != "file"]
        if isinstance(written, str) and written in names:
            return {"model": written}
        if not isinstance(written, dict):
            near = difflib.get_close_matches(str(written), zoo(), 1, cutoff=0.7)
            how = HOW.replace("NAME", near[0]) if near else HOW
            said = f"{as_written(written)} is not known; {nearest(written, names)}; {how}"
            raise StudyError(f"{place}: {said}")
        if "file" in written or "zoo" in written:
            layer, named = load_layer(written, self.homes[-1])
            self.files[layer.digest] = named
            return {"model": "file", "layer": layer}
        if "construction" in written:
            chosen = validated(ConstructionModel, written, f"{place}.")
            return {"model": construction_name(chosen.construction), "construction": chosen.options}
        valid = nearest(next(iter(written), ""), ["construction", "file", "zoo"])
        raise StudyError(f"{place}: {as_written(written)} has no key that names a model; {valid}")

    def _check_keys(self, place: str, written: Mapping[str, Any]) -> None:
        """Make sure that one of the study's models has each of these parts and keys."""
        names = " or ".join(dict.fromkeys(record.name for record in self.records))
        parts = [record.parts for record in self.records]
        for part, keys in written.items():
            own = [one[part] for one in parts if part in one]
            asked = {part: {key for one in parts for key in one}}
            if own and None not in own:
                asked |= {f"{part}.{key}": {k for one in own for k in one or ()} for key in keys}
            for key, valid in asked.items():
                if (name := key.rpartition(".")[2]) not in valid:
                    said = f"unknown key of model {names}; {nearest(name, sorted(valid))}"
                    raise StudyError(f"{place}{key}: {said}")

    def study(self) -> Study:
        """The study with all its cells, each once: a construction serves all step limits."""
        cells = list(
            dict.fromkeys(
                cell
                for model, record in zip(self.models, self.records, strict=True)
                for index in range(len(self.written.cells))
                for cell in self._cells(index, model, record)
            )
        )
        search, target = self.written.search, self.records[0].target
        for cell in cells:
            check_search(cell, search)
        if target is not None and "target" not in search.model_fields_set:
            search = search.model_copy(update={"target": target})
        return Study(name=self.written.name, cells=tuple(cells), search=search, files=self.files)

    def _cells(self, index: int, model: Keys, record: Model) -> Iterable[Cell]:
        """The cells of an entry for one model: every combination of its lists."""
        item = self.written.cells[index]
        places = dict.fromkeys(("m", "d_model", *item.written), f"cells[{index}].")
        parts = {
            part: _merged(*(one.written.get(part, {}) for one in (self.written, item)))
            for part in record.parts
            if part != "embedding"
        }
        graphs = each(parts.get("graph", {}), ["degree", "file"])
        if graphs[0].get("family") == "edges":
            place = f"{places.get('graph', '')}graph."
            graphs = [self._loaded(EdgesFile, graph, place) for graph in graphs]
        if record.room is None:
            problems: list[Keys] = [{"m": m} for m in item.m] or [{}]
        else:
            written = {part: parts[part] for part in record.room.parts}
            found = resolve_name(record.room.problems)(written, places, self._loaded)
            problems = [{**one, "m": m} for one in found for m in item.m or [one["m"]]]
        training = {**self.records[0].defaults, **parts["training"]}
        limits = training.get("max_steps")
        if isinstance(limits, list) and all(type(limit) is int for limit in limits):
            training["max_steps"] = sorted(limits)
        training = {key: value for key, value in training.items() if key in record.training}
        lists = (
            problems,
            item.d_model,
            graphs,
            self._embeddings(item) if "embedding" in record.parts else [{}],
            each(training, ["learning_rate", "max_steps", "embeddings", "relations"]),
        )
        for problem, d_model, graph, embedding, keys in itertools.product(*lists):
            if not problem and "items" in graph:
                problem = {"m": graph["items"]}
            if embedding.get("family") == "vectors":
                place = f"{places.get('embedding', '')}embedding."
                items = self.names.get(graph.get("digest", ""))
                sizes = problem.get("m", 0), d_model, items, record.task == "matching"
                embedding = self._loaded(VectorsFile, embedding, place, self.tables, *sizes)
            cell = {
                **model,
                **problem,
                "graph": graph,
                "d_model": d_model,
                "embedding": embedding,
                "context": parts["context"],
                "training": keys,
            }
            yield validated(cell_type(record.name), cell, places).canonical()

    def _embeddings(self, item: CellItem) -> list[Keys]:
        """The embeddings of an entry: each of its own with each of the study's."""
        commons, owns = (one.embedding or ({},) for one in (self.written, item))
        return [_merged(common, own) for common in commons for own in owns]

    def _loaded(self, spec: type[Any], keys: Keys, place: str, *sizes: Any) -> Keys:
        """A part of a cell whose file is loaded; what was read of it is remembered."""
        written = validated(spec, keys, place)
        places = (home for home in self.homes if (home / written.file).exists())
        home = next(places, self.homes[-1])
        path = home / written.file
        with within(f"{place}file: "), reading(path):
            loaded: Loaded = written.load(home, *sizes)
        digest = loaded.keys["digest"]
        self.names[digest] = loaded.names
        self.files[digest] = {
            "file": str(path.absolute()),
            "read": f"{path.name}: {loaded.told}",
            "made": written.model_dump(include={"centre", "whiten", "normalise"}),
        }
        return loaded.keys


def _merged(common: Keys, own: Keys) -> Keys:
    """Keys with an entry's own; if they name another family, these stand alone."""
    families = {str(keys["family"]) for keys in (common, own) if "family" in keys}
    return dict(own) if len(families) > 1 else {**common, **own}


def each(keys: Keys, names: Sequence[str] | None = None) -> list[Keys]:
    """A copy of the keys for every combination of the values that they list.

    Args:
        names: the keys that may list several values; all if not given.
    """
    lists = {
        name: value
        for name, value in keys.items()
        if isinstance(value, list) and value and (names is None or name in names)
    }
    combinations = itertools.product(*lists.values())
    return [{**keys, **dict(zip(lists, values, strict=True))} for values in combinations]
