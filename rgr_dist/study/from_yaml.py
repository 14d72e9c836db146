"""Reads a study file: YAML as written becomes the cells and the search of a ``Study``.

Every key that is left out takes the paper's value, and an unknown key is an error.
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, StrictInt

from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import ConstructionModel
from rgr_dist.study.database import Database
from rgr_dist.study.edge_list import EdgesFile, load_edges
from rgr_dist.study.errors import StudyError, load_yaml, validated
from rgr_dist.study.input_file import LARGEST_STUDY, check_file
from rgr_dist.study.models import MODELS, construction_name
from rgr_dist.study.search import Search
from rgr_dist.study.shipped import shipped_studies, shipped_text
from rgr_dist.study.spec import LARGEST_COUNT, Spec, listed
from rgr_dist.study.study import Study
from rgr_dist.study.token_table import TableFile, Vocabulary
from rgr_dist.study.training import Context, Training
from rgr_dist.study.triple_list import TriplesFile, load_triples

Keys = dict[str, Any]
Files = dict[str, dict[str, Any]]
"""The keys that named an array's files, by its digest."""
Loaded = TypeVar("Loaded")

OVERRIDES = ("context", "training", "graph", "database", "facts")
"""Parts that an entry of ``cells`` may override key by key."""


class CellItem(Spec):
    """One entry of ``cells``: lists of m and d_model, and what this entry overrides.

    Attributes:
        m: items: a number, or a list of them; of model facts left out, as the triples are counted.
        d_model: width of an item's embedding: a number, or a list of them.
        context: keys of ``context`` for these cells.
        training: keys of ``training`` for these cells.
        graph: keys of ``graph`` for these cells, or another family.
        database: keys of ``database`` for these cells, or another family.
        facts: keys of ``facts`` for these cells.
    """

    m: Annotated[tuple[StrictInt, ...], BeforeValidator(listed), Field(min_length=1)] = ()
    d_model: Annotated[tuple[StrictInt, ...], BeforeValidator(listed), Field(min_length=1)]
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    graph: Keys = Field(default_factory=dict)
    database: Keys = Field(default_factory=dict)
    facts: Keys = Field(default_factory=dict)


class StudyFile(Spec):
    """A study file as written, before its cells are expanded.

    Attributes:
        name: of the study, and of its folder in the store.
        model: what is trained: a model's name, or a construction's keys.
        graph: the relations among the items.
        embedding: the items' vectors.
        database: of model facts: the triples that are stored, in place of a graph.
        facts: of model facts: what is trained and how it is judged.
        context: how contexts are drawn.
        training: how a run is trained, and when it stops.
        cells: what is measured: sizes, and what some of them override.
        search: which widths are tried, and what passes.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    model: Any = "max"
    graph: Keys = Field(default_factory=dict)
    embedding: Keys = Field(default_factory=dict)
    database: Keys = Field(default_factory=dict)
    facts: Keys = Field(default_factory=dict)
    context: Keys = Field(default_factory=dict)
    training: Keys = Field(default_factory=dict)
    cells: tuple[CellItem, ...] = Field(min_length=1)
    search: Search = Search()


def load_study(source: str, overrides: Sequence[str] = ()) -> Study:
    """Load a shipped study by name, or a study file by path, with ``a.b=c`` overrides.

    Raises:
        StudyError: the source is unknown or unreadable, or the study is not valid.
    """
    text = _read(source)
    document = load_yaml(text, source)
    if not isinstance(document, dict):
        raise StudyError(f"{source}: a study is a mapping with the keys name, cells, search, …")
    for override in overrides:
        _override(document, override)
    home = Path() if source in shipped_studies() else Path(source).parent
    return parse_study(document, source, home)


def parse_study(
    document: Mapping[str, Any], where: str = "study", home: Path | None = None
) -> Study:
    """Validate a study document, expand its cells, and load the files that it names.

    Args:
        home: the folder that paths in the document are relative to; the present one by default.

    Raises:
        StudyError: naming the key, where it is and what would be valid.
    """
    written = _written(document, where)
    cells: list[Cell] = []
    model = _model(written.model, where)
    record = MODELS.get(str(model["model"]))  # an unknown model is refused with its first cell
    papers = record.training if record else {}
    has_null = record is not None and record.task == "matching"
    vectors, search = _Vectors(written.embedding, where, home or Path()), written.search
    for index, item in enumerate(written.cells):
        here = f"cells[{index}]."
        prefix = {part: here for part in ("m", "d_model", *OVERRIDES) if getattr(item, part, None)}
        graph, at = _merged(written.graph, item.graph), f"{prefix.get('graph', '')}graph."
        graphs = _graphs(graph, where, at, home or Path(), vectors.files)
        if record is not None and record.task == "facts":
            if item.m:
                raise StudyError(
                    f"{where}: {here}m: of model facts the triples are counted; omit it"
                )
            stored = _databases(written, item, where, prefix, home or Path(), vectors.files)
            facts = _each({**written.facts, **item.facts})
            problems = [{**one, "facts": keys} for one in stored for keys in facts]
        elif not item.m:
            raise StudyError(f"{where}: {here}m: missing; it has no default")
        else:
            for name in ("database", "facts"):
                if getattr(written, name) or getattr(item, name):
                    at = prefix.get(name, "")
                    raise StudyError(
                        f"{where}: {at}{name}: model {model['model']} does not use it; leave it out"
                    )
            problems = [{"m": m} for m in item.m]
        training = {**papers, **written.training, **item.training}
        budgets = _budgets(training, where, prefix.get("training", ""))
        sizes = itertools.product(problems, item.d_model, graphs, budgets)
        for problem, d_model, one_graph, max_steps in sizes:
            cell = {
                **model,
                **problem,
                "graph": one_graph,
                "d_model": d_model,
                "embedding": vectors.of(problem["m"], d_model, null=has_null),
                "context": {**written.context, **item.context},
                "training": {**training, **max_steps},
            }
            cells.append(validated(Cell, cell, where, prefix))
    times = Counter(cells)
    twice = next((cell for cell in cells if times[cell] > 1), None)
    if twice is not None:
        raise StudyError(f"{where}: cells: {twice.name} is listed twice; list each cell once")
    cells = _with_longer(cells, search.retest_steps, where)
    search = search.model_copy(update={"retest_steps": None})
    for one in cells:
        _check_cell(one, search, where)
    if record and record.target is not None and "target" not in search.model_fields_set:
        search = search.model_copy(update={"target": record.target})
    return Study(name=written.name, cells=tuple(cells), search=search, files=vectors.files)


def _written(document: Mapping[str, Any], where: str) -> StudyFile:
    """The study file's own keys, before its cells are expanded.

    Raises:
        StudyError: naming its faults, and those of ``context`` and ``training`` beside them.
    """
    try:
        return validated(StudyFile, document, where, "")
    except StudyError as error:
        found = [str(error)]
    for part, spec in (("context", Context), ("training", Training)):
        own = document.get(part)
        if isinstance(own, dict):
            first = {k: v[0] if k == "max_steps" and isinstance(v, list) and v else v
                     for k, v in own.items()}  # fmt: skip
            try:
                validated(spec, first, where, f"{part}.")
            except StudyError as error:
                found.append(str(error).removeprefix(f"{where}: "))
    raise StudyError("; ".join(found))


def _model(written: Any, where: str) -> Keys:
    """The model of a study's cells: a name, or a mapping that names a construction."""
    if not isinstance(written, Mapping):
        return {"model": written}
    chosen = validated(ConstructionModel, written, where, "model.")
    options = chosen.model_dump(exclude={"construction"})
    return {"model": construction_name(chosen.construction), "construction": options}


def _check_cell(cell: Cell, search: Search, where: str) -> None:
    """Make sure that a cell can be searched as asked.

    Raises:
        StudyError: its heads would split its values unevenly, or the construction takes another
            embedding.
    """
    if cell.record.algorithm == "3" and cell.embedding.family != "onehot":
        raise StudyError(
            f"{where}: embedding.family: {cell.embedding.family} is not valid; "
            "algorithm 3 takes onehot"
        )
    if cell.record.axis != search.axis:
        instead = (
            "give axis: d_vo, with per: {d_qk: [1, 2, 4, 8]} or another list of settings"
            if cell.record.axis == "d_vo"
            else "only model facts takes d_vo"
        )
        raise StudyError(
            f"{where}: search.axis: {search.axis} is not valid for model {cell.model}; {instead}"
        )
    if not cell.record.splits_values:
        return
    why = "a head's values have width d_model / h, so list divisors of d_model"
    if search.heads == "all":
        raise StudyError(f"{where}: search.heads: all is not for model {cell.model}; {why}")
    bad = next((h for h in search.heads if cell.d_model % h), None)
    if bad is not None:
        raise StudyError(
            f"{where}: search.heads: {bad} does not divide d_model = {cell.d_model} "
            f"of cell {cell.name}; {why}"
        )


def _budgets(training: Keys, where: str, prefix: str) -> list[Keys]:
    """The step limits of a cell, increasing.

    Returns:
        ``{"max_steps": …}`` for each; what is no list of numbers is left for the cell to refuse.

    Raises:
        StudyError: a limit is listed twice.
    """
    key = "max_steps"
    listed = training.get(key, Training.model_fields[key].default)
    limits = listed if isinstance(listed, list) and listed else [listed]
    twice = next((limit for i, limit in enumerate(limits) if limit in limits[:i]), None)
    if twice is not None:
        raise StudyError(f"{where}: {prefix}training.{key}: lists {twice} twice; list each once")
    if all(type(limit) is int for limit in limits):
        limits = sorted(limits)
    return [{key: limit} for limit in limits]


def _with_longer(cells: list[Cell], times: int | None, where: str) -> list[Cell]:
    """The cells, each followed by itself at so many times its step limit if no other is that.

    Raises:
        StudyError: it would be too long.
    """
    every: list[Cell] = []
    for cell in cells:
        every.append(cell)
        if times is not None:
            limit = cell.training.max_steps
            most = LARGEST_COUNT // limit
            if times > most:
                raise StudyError(
                    f"{where}: search.retest_steps: {times} times max_steps = {limit} "
                    f"of cell {cell.name} exceeds {LARGEST_COUNT}; give at most {most}"
                )
            longer = cell.with_limit(times * limit)
            if longer not in cells:
                every.append(longer)
    return every


class _Vectors:
    """The embedding that a study names, with a table's rows loaded for each of its cells."""

    def __init__(self, keys: Keys, where: str, home: Path) -> None:
        self.keys, self.where = keys, where
        self.files: Files = {}
        self.vocabulary = None
        if keys.get("family") == "table":
            file = validated(TableFile, keys, where, "embedding.")
            self.written = file.located(home)
            self.vocabulary = self._told(lambda: Vocabulary(file, home))

    def of(self, m: int, d_model: int, null: bool) -> Keys:
        """The embedding of a cell."""
        vocabulary = self.vocabulary
        if vocabulary is None:
            return self.keys
        digest = assets.add(self._told(lambda: vocabulary.rows(m, d_model, null)))
        self.files[digest] = self.written
        return {"family": "table", "digest": digest}

    def _told(self, load: Callable[[], Loaded]) -> Loaded:
        try:
            return load()
        except StudyError as error:
            raise StudyError(f"{self.where}: embedding.{error}") from None


def _merged(common: Keys, own: Keys) -> Keys:
    """A graph with an entry's own keys; another family takes none of the common ones."""
    families = {keys["family"] for keys in (common, own) if isinstance(keys.get("family"), str)}
    return own if len(families) > 1 else {**common, **own}


def _graphs(keys: Keys, where: str, path: str, home: Path, files: Files) -> list[Keys]:
    """One graph for each degree of a list; that of a file with its edges loaded."""
    if keys.get("family") == "edges":
        file = validated(EdgesFile, keys, where, path)
        try:
            loaded = load_edges(file.located(home))
        except StudyError as error:
            raise StudyError(f"{where}: {path}file: {error}") from None
        files[loaded["digest"]] = {"file": file.located(home)}
        return [loaded]
    degrees = keys.get("degree")
    if not isinstance(degrees, list) or not degrees:
        return [keys]
    return [{**keys, "degree": degree} for degree in degrees]


class _OneDatabase(Spec):
    """A database by itself, so that its faults are told before its triples are counted."""

    database: Database


def _databases(
    written: StudyFile, item: CellItem, where: str, prefix: Keys, home: Path, files: Files
) -> list[Keys]:
    """One ``m`` and ``database`` for each combination of listed keys; a file's with its triples.

    Raises:
        StudyError: there is none, or it is not valid.
    """
    keys, at = _merged(written.database, item.database), prefix.get("database", "")
    if not keys:
        raise StudyError(
            f"{where}: {at}database: missing; model facts needs one, such as "
            "{family: function, keys: 64, queries: 8, values: 64}"
        )
    if keys.get("family") == "file":
        file = validated(TriplesFile, keys, where, f"{at}database.")
        try:
            loaded = load_triples(file.located(home))
        except StudyError as error:
            raise StudyError(f"{where}: {at}database.file: {error}") from None
        files[loaded["digest"]] = {"file": file.located(home)}
        return [{"m": loaded["triples"], "database": loaded}]
    found = []
    for one in _each(keys):
        stored = validated(_OneDatabase, {"database": one}, where, at).database
        try:
            stored.check()
        except ValueError as error:
            raise StudyError(f"{where}: {at}{error}") from None
        found.append({"m": stored.n_asked, "database": one})
    return found


def _each(keys: Keys) -> list[Keys]:
    """The keys with every combination of the values of those that list several."""
    lists = [value if isinstance(value, list) and value else [value] for value in keys.values()]
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*lists)]


def _read(source: str) -> str:
    path = Path(source)
    if not source or "\0" in source:
        raise StudyError(f"study {source!r}: neither a name nor a path")
    if source in shipped_studies():
        return shipped_text(source)
    looks_like_path = path.suffix in {".yaml", ".yml"} or len(path.parts) > 1 or _exists(path)
    if not looks_like_path:
        known = shipped_studies()
        near = difflib.get_close_matches(source, known, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise StudyError(
            f"study '{source}': unknown; {hint}valid: {', '.join(known)}, or a YAML file's path"
        )
    check_file(path, "give a readable YAML file", LARGEST_STUDY)
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise StudyError(
            f"{source}: cannot be read: {error.strerror}; give a readable YAML file"
        ) from None
    except UnicodeDecodeError:
        raise StudyError(f"{source}: not a text file; a study is YAML in UTF-8") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its name is too long
        return False


def _override(document: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise StudyError(f"--set {override}: not of the form key.subkey=value")
    *path, last = key.strip().split(".")
    if not all((*path, last)):
        raise StudyError(f"--set {override}: not of the form key.subkey=value")
    items = document.get("cells")
    for item in items if isinstance(items, list) else ():
        # The override holds in every cell, also where a cell has its own value.
        if len(path) == 1 and isinstance(item, dict) and isinstance(item.get(path[0]), dict):
            item[path[0]].pop(last, None)
    keys = document
    for part in path:
        keys = keys.setdefault(part, {})
        if not isinstance(keys, dict):
            raise StudyError(f"--set {override}: '{part}' has no keys below it")
    try:
        keys[last] = load_yaml(value, "--set")
    except StudyError:
        raise StudyError(f"--set {override}: '{value}' is not a YAML value") from None
