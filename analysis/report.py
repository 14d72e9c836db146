"""The report of a study: what its page holds, in which order, and writing it into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pandas as pd

from rgr_dist import paper
from rgr_dist.analysis import beside_paper, findings, phases, protocol
from rgr_dist.analysis.accuracy import accuracy
from rgr_dist.analysis.embeddings import (
    compares_embeddings,
    embeddings,
    geometry,
    trains_embeddings,
)
from rgr_dist.analysis.figures import style
from rgr_dist.analysis.figures.accuracy import accuracy as draw_accuracy
from rgr_dist.analysis.figures.curves import curves as draw_curves
from rgr_dist.analysis.figures.embeddings import embeddings as draw_embeddings
from rgr_dist.analysis.figures.embeddings import kinds as draw_kinds
from rgr_dist.analysis.figures.heads import heads as draw_heads
from rgr_dist.analysis.figures.law import h_star as draw_h_star
from rgr_dist.analysis.figures.law import law as draw_law
from rgr_dist.analysis.figures.law import vertices as draw_vertices
from rgr_dist.analysis.figures.layers import layers as draw_layers
from rgr_dist.analysis.figures.phases import phases as draw_phases
from rgr_dist.analysis.figures.training_time import training_time as draw_training_time
from rgr_dist.analysis.growth import groups, laws
from rgr_dist.analysis.laws import PAPERS, POWER, apart
from rgr_dist.analysis.layers import compares_layers, costs
from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.page import Section, Table, render
from rgr_dist.analysis.phases import is_of_phases
from rgr_dist.analysis.probes import probes
from rgr_dist.analysis.tables import best, thresholds
from rgr_dist.analysis.training_time import gains
from rgr_dist.analysis.wording import (
    MISSING,
    plural,
    real_range,
    span,
    three_digits,
    with_limits,
    with_range,
)
from rgr_dist.planning.budgets import records
from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study

MOST_PANELS = 24
"""The most cells that a figure has panels for: the first of a study."""

Figure = style.Figure


def write_page(study: Study, store: Store, state: str | None = None) -> str:
    """Write a study's page as its store has it now; returns its address.

    Args:
        state: how far the study is, while it runs: such a page loads itself anew.

    Raises:
        StoreError: the store cannot be read or written to.
    """
    return publish(open_results(study, store), store, state)


def publish(results: StudyResults, store: Store, state: str | None = None) -> str:
    """Write the page and its tables into the store, and above them the two at the centre of all.

    Returns:
        The page's address.
    """
    study = results.study
    for name, table in {"thresholds": thresholds, "best": best}.items():
        content = table(results).to_parquet()
        store.write_bytes(f"studies/{study.name}/{name}.parquet", content, sync=False)
    folder, tables = f"studies/{study.name}/report", files(results)
    page = page_of(results, [*tables], state)
    for name, file in (tables | {"index.html": page.encode()}).items():
        store.write_bytes(f"{folder}/{name}", file, sync=False)
    return store.address(f"{folder}/index.html")


def page_of(results: StudyResults, beside: Sequence[str] = (), state: str | None = None) -> str:
    """The page of a study as HTML.

    Args:
        beside: names of files that lie beside it.
        state: as for ``write_page``.
    """
    words = [findings.caveat(results), terms(results.study)]
    return render(
        f"Study {results.study.name}",
        headline(results),
        [line for line in words if line],
        sections(results),
        beside,
        state,
    )


def headline(results: StudyResults) -> str:
    """The finding of a study, in a sentence."""
    study = results.study
    if is_of_phases(study):
        return phases.finding(results)
    if study.record.algorithm == "one-head":
        return phases.one_head_finding(results)
    if (room := study.record.room) is not None:
        told: str = resolve_name(room.section).finding(results)
        return told
    return findings.finding(results)


def files(results: StudyResults) -> dict[str, bytes]:
    """The tables of a study as CSV, and its YAML, by name."""
    tables = {"probes": probes(results)}
    if results.study.record.finds == "D_K":
        told = {"best": best(results), "thresholds": thresholds(results), "laws": laws(results)}
        tables = told | tables
    else:
        tables["accuracy"] = accuracy(results)
    if (room := results.study.record.room) is not None:
        tables = resolve_name(room.section).tables(results) | tables
    written = {
        f"{name}.csv": table.to_csv(index=False, float_format="%.8g").encode()
        for name, table in tables.items()
    }
    return {**written, "study.yaml": results.study.to_yaml().encode()}


def terms(study: Study) -> str:
    """What the words of a page mean."""
    record, search = study.record, study.search
    passes = f"{'≤' if record.minimised else '≥'} {search.target:g}"
    trained = [cell for cell in study.cells if not cell.record.algorithm] or study.cells
    steps = span([cell.training.max_steps for cell in trained])
    degrees = {cell.graph.degree for cell in study.cells if cell.family == "regular"}
    relations = "m′ relations among them" + ", r of each item" * (len(degrees) > 1)
    said = f"A cell (m, d_model): m items in d_model dimensions, {relations}. "
    said += "D_K = h · d_k: total key width of h heads. "
    if record.finds == "D_K":
        said += (
            "D_K*: the smallest D_K at which a trained layer recovers the relations (mean test "
            f"{record.score} {passes} over {plural(search.seeds, 'seed')}, within {steps} steps); "
            "h*: how many heads that takes."
        )
    return said


# What a page holds


def sections(results: StudyResults) -> list[Section]:
    """The sections of a study's page, that with the answer to its question first."""
    made = [make(results) for make in CONTENTS[_kind(results.study)]]
    return [section for section in made if section is not None]


def figures(results: StudyResults) -> dict[str, Figure]:
    """The figures of a study's page by name, in its order."""
    return {figure.name: figure for part in sections(results) for figure in part.figures}


def figures_named(results: StudyResults, names: Sequence[str] = ()) -> list[Figure]:
    """The figures of these names; all if none are given.

    Raises:
        StudyError: the page has no figure of one of these names.
    """
    every = figures(results)
    for name in names:
        if name not in every:
            raise StudyError(f"the page has no figure {name!r}; its figures: {', '.join(every)}")
    return [every[name] for name in names or every]


def _kind(study: Study) -> str:
    if study.record.room is not None:
        return "room"
    if study.record.finds != "D_K":
        return study.record.finds
    if is_of_phases(study):
        return "phases"
    if compares_layers(study):
        return "layers"
    if compares_embeddings(study):
        return "embeddings"
    if study.has_budgets:
        return "training time"
    if study.search.mode == "grid" or len(study.cells) == 1:
        return "curves"
    return "growth"


def _names(study: Study) -> pd.Series[str]:
    """What panels and rows call each cell, by cell_id: ``(64, 16)`` and what tells it apart."""
    names = {}
    for cell in study.cells:
        parts = [f"{cell.m}, {cell.d_model}"]
        parts += [f"r = {cell.graph.degree}"] if cell.graph.degree > 1 else []
        told = study.differences[cell.cell_id].replace("=True", "").replace(",", ", ")
        parts += [told.replace("=", " ").replace("_", " ")]
        names[cell.cell_id] = f"({', '.join(part for part in parts if part)})"
    return pd.Series(names)


def _largest(results: StudyResults) -> pd.Series[bool]:
    """Whether figures show a cell, by cell_id: of several step limits the largest."""
    table = best(results).set_index("cell_id")["largest"].astype(bool)
    return table & (table.cumsum() <= MOST_PANELS)


def growth(results: StudyResults) -> Section | None:
    """D_K* against the law's scale."""
    table = best(results)
    table = table[table["largest"] & (table["protocol"] == "")]
    shown = table[table["D_K"].notna() | (table["D_K_low"] > 1)]
    if shown.loc[shown["D_K"].notna(), "scale"].nunique() < 3:
        return None
    fitted = laws(results)
    is_ranked = bool(fitted["aicc"].notna().any())
    of_paper = fitted[(fitted["protocol"] == "") & fitted["max_steps"].isna()]
    of_paper = of_paper[of_paper["formula"] == (POWER if is_ranked else PAPERS)]
    ours = records(of_paper)[0] if len(of_paper) else None
    theirs = beside_paper.papers_law(results)
    drawn = Figure(
        "law",
        "Each mark is the D_K* of a cell, with its interval over seeds; colour and shape are h*. "
        + ("Solid: the law fitted to these cells" if ours else "")
        + ((". " if is_ranked else ", shaded its 95 % limits. ") if ours else "")
        + ("Dashed: the line that the paper prints. " if theirs else "")
        + _signs(shown),
        partial(draw_law, shown, ours, theirs.slope if theirs else None),
    )
    told = findings.which_law(results), findings.noise_sentence(results)
    words = [] if is_ranked else [line for line in told if line]
    return Section(name="growth", title="How D_K* grows", words=words, figures=[drawn])


def of_embeddings(results: StudyResults) -> Section:
    """D_K* with frozen and with trained embeddings, or of each kind of rows and edges."""
    table = embeddings(results)
    said = "Each mark is the D_K* of a cell, with its interval over seeds"
    draw: Callable[..., Any]
    if trains_embeddings(results.study):
        said += "; colour and shape are h*. Solid: embeddings that are trained with the layer. "
        draw, panels = draw_embeddings, 1
        said += "Dashed: frozen ones. "
    else:
        said += "; lines join medians. "
        draw, panels = draw_kinds, table["how"].nunique()
    caption = (
        "How rows lie. Condition: the largest over the smallest singular value. Participation: "
        "(Σ λ)² / Σ λ² of the eigenvalues of XᵀX; centred: without the mean row. Cosine: mean over "
        "pairs; nearest: with the nearest row."
    )
    rows = geometry(results.study) if table["rows"].nunique() > 1 else pd.DataFrame()
    for name in rows.columns[3:]:
        rows[name] = rows[name].map("{:.3g}".format)
    return Section(
        name="by-kind",
        title="D_K* by kind of embeddings and edges",
        figures=[Figure("embeddings", said + _signs(table), partial(draw, table), panels)],
        tables=[Table(name="table-rows", caption=caption, rows=rows)] if len(rows) else [],
    )


def _signs(table: pd.DataFrame) -> str:
    """What the signs mean that a figure has of these rows."""
    said = "An arrow starts at the smallest width not ruled out. " * bool(table["D_K"].isna().any())
    return said + "Hollow: not finished." * bool((table["status"] == "open").any())


def cells(results: StudyResults) -> Section:
    """D_K*, h* and the certificate of every cell."""
    table, names = best(results), _names(results.study)
    rows = {
        "cell": table["cell_id"].map(names),
        "D_K*": _ranged(table, "D_K", "D_K_low", "D_K_high"),
        "h*": _ranged(table, "h_star", "h_low", "h_high"),
        "d_k": table["d_k"],
        "certificate: d_k passes | fails": [
            certificate_words(one, results.study.search.target) for one in table["certificate"]
        ],
    }
    if (table["status"] != "found").any():
        rows["search"] = table["status"]
    if table["confirmed"].notna().any():
        rows["confirmed"] = table["confirmed"].map({True: "yes", False: "no"}, na_action="ignore")
    fresh = results.study.search.confirm_seeds
    caption = (
        f"D_K* [interval over {plural(results.study.search.seeds, 'seed')}]; h* [the head counts "
        "that do as well, by a paired t-test]. A certificate has two widths that were trained, "
        "with their mean scores: one that passes, and the next smaller one, which fails."
        + f" Confirmed: D_K* passes on {fresh} fresh seeds too."
        * ("confirmed" in rows)
    )
    listed = Table(name="table-cells", caption=caption, rows=pd.DataFrame(rows))
    return Section(name="cells", title="Cells", tables=[listed])


def _ranged(table: pd.DataFrame, *names: str) -> list[str]:
    return [with_range(*row) for row in table[[*names]].itertuples(index=False, name=None)]


def certificate_words(certificate: Any, target: float) -> str:
    """``9 ✓ .995 | 8 ✗ .984``; of a probe that stopped early, ``8 ✗ .550 of 2`` seeds.

    A failing mean is never rounded to the target: .9899 is .989.
    """
    if not isinstance(certificate, dict) or not certificate.get("pass"):
        return MISSING
    passed, failed = certificate["pass"], certificate.get("fail")
    words = f"{passed['d_k']} ✓ {_mean(passed['mean_score'], target, False)}"
    if failed:
        few = failed["n_seeds"] < passed["n_seeds"]
        of = f" of {failed['n_seeds']}" if few else ""
        words += f" | {failed['d_k']} ✗ {_mean(failed['mean_score'], target, True)}{of}"
    return words


def _mean(mean: float | None, target: float, fails: bool) -> str:
    if mean is None:
        return "diverged"
    thousandths = round(1000 * mean)
    if fails and thousandths == round(1000 * target):
        thousandths += -1 if mean < target else 1
    return f"{thousandths / 1000:.3f}".removeprefix("0")


def heads(results: StudyResults) -> Section | None:
    """D_K at every head count."""
    table = thresholds(results)
    table = table[table["cell_id"].map(_largest(results)).astype(bool)]
    table = table[table["D_K"].notna() | (table["D_K_low"] > table["h"])]
    if table["h"].nunique() < 2 or results.runs.empty:
        return None
    drawn = Figure(
        "heads",
        "The smallest D_K that passes at each head count; bars are intervals over seeds, the "
        "largest mark is D_K*. An arrow: more than this; no width that was allowed passes, or none "
        "near D_K* does.",
        partial(draw_heads, table, _names(results.study)),
        table["cell_id"].nunique(),
    )
    return Section(name="by-heads", title="D_K by number of heads", figures=[drawn])


def scores(results: StudyResults) -> Section | None:
    """Scores against D_K."""
    table, study = probes(results), results.study
    table = table[table["cell_id"].map(_largest(results)).astype(bool)]
    if table.empty:
        return None
    drawn = curves_figure(table, study)
    return Section(name="scores", title="Scores against D_K", figures=[drawn])


def curves_figure(table: pd.DataFrame, study: Study) -> Figure:
    """The figure of scores against D_K.

    Args:
        table: rows of ``probes.probes``.
    """
    record, target = study.record, study.search.target
    lost = int(table["diverged"].sum()), int(table["failed"].sum())
    also = f" Diverged, which counts as a fail: {plural(lost[0], 'run')}." if lost[0] else ""
    also += f" Could not be trained: {plural(lost[1], 'run')}." if lost[1] else ""
    return Figure(
        "curves",
        f"Mean test {record.score} of every width that was trained; colour and shape are h. "
        f"Dashed: the target, {target:g}. Hollow: not every seed ran, since the verdict was "
        f"certain.{also}",
        partial(
            draw_curves,
            table,
            _names(study),
            target,
            score=record.score,
            minimised=record.minimised,
        ),
        table["cell_id"].nunique(),
    )


def which_law(results: StudyResults) -> Section | None:
    """The laws that were compared, and h* against the compression; None with too few cells."""
    table = laws(results)
    table = table[(table["protocol"] == "") & table["max_steps"].isna() & table["aicc"].notna()]
    if table.empty:
        return None
    found = best(results)
    found = found[found["h_star"].notna() & found["largest"] & (found["protocol"] == "")]
    rows = pd.DataFrame(
        {
            "D_K* =": table["formula"],
            "parameters [95 % limits]": [
                ", ".join(
                    f"{name} = {with_limits(value, row['low'][name], row['high'][name])}"
                    for name, value in row["parameters"].items()
                )
                for row in table.to_dict("records")
            ],
            "AICc above the best": table["aicc"] - table["aicc"].min(),
            "error on a cell left out": [f"{100 * one:.0f} %" for one in table["loo"]],
            "scatter": [f"{100 * one:.0f} %" for one in table["scatter"]],
        }
    )
    caption = "Laws fitted to the intervals between the failing and the passing width."
    drawn = Figure(
        "h-star",
        "h* of each cell against m′ / d_model; a bar spans the head counts that do as well.",
        partial(draw_h_star, found),
    )
    return Section(
        name="which-law",
        title="Which law",
        words=[findings.which_law(results), findings.noise_sentence(results)],
        tables=[Table(name="table-laws", caption=caption, rows=rows)],
        figures=[drawn],
    )


def the_paper(results: StudyResults) -> Section | None:
    """The paper's cells beside ours."""
    table = beside_paper.beside_paper(results)
    if table.empty:
        return None
    caption = (
        "d_k at D_K* as the paper prints it (Table 1), and as measured here. The paper prints no "
        "D_K* or h* by cell."
    )
    rows = beside_paper.shown(table)
    line = beside_paper.slopes(results)
    return Section(
        name="paper",
        title="The paper beside this study",
        words=[line] if line else [],
        tables=[Table(name="table-paper", caption=caption, rows=rows)],
    )


def training_time(results: StudyResults) -> Section:
    """What longer training changes."""
    table, names = gains(results), _names(results.study)
    drawn = Figure(
        "training-time",
        "Left: D_K* at each step limit, a line for each size. Right: how many times more D_K one "
        "head needs. Bars are intervals over seeds; colour and shape are h*.",
        partial(draw_training_time, table),
        2,
    )
    rows = {
        "cell": table["family"].map(names).str.replace(r", max steps.*\)", ")", regex=True),
        "T": table["max_steps"],
        "D_K*": _ranged(table, "D_K", "D_K_low", "D_K_high"),
        "h*": _ranged(table, "h_star", "h_low", "h_high"),
        "D_K of one head": _ranged(table, "D_K_one", "one_low", "one_high"),
        "gain": [
            MISSING if pd.isna(gain) else with_limits(gain, _none(low), _none(high))
            for gain, low, high in table[["gain", "gain_low", "gain_high"]].itertuples(index=False)
        ],
    }
    listed = Table(
        name="table-gains",
        caption="D_K* beside the D_K of one head at every step limit T; gain: their ratio.",
        rows=pd.DataFrame(rows),
    )
    title = "What longer training changes"
    return Section(name="time", title=title, figures=[drawn], tables=[listed])


def vertices(results: StudyResults) -> Section | None:
    """D_K* against m at equal m′; None where powers of the two are not told apart."""
    table, panels = best(results).set_index("cell_id", drop=False), {}
    alike = {tuple(one.cells["cell_id"]): one for one in groups(results)}  # one at its own limit
    order = sorted(alike.items(), key=lambda one: (one[1].protocol, one[1].max_steps or 0))
    for cells, group in order:
        if law := apart(group.laws):
            limit = [f"{group.max_steps:,} steps"] if group.max_steps else []
            named = ", ".join([group.protocol] * bool(group.protocol) + limit)
            powers = "m′$^{{{:.2f}}}$ m$^{{{:.2f}}}$".format(*law.theta[1:])
            panels[f"{named}: {powers}"] = table.loc[[*cells]]
    if not panels:
        return None
    drawn = Figure(
        "vertices",
        "D_K* of each cell against m; lines join cells of equal m′. They would be level if edges "
        "alone counted, and one line if vertices alone did. Above each panel is the growth that "
        "fits it. Bars are intervals over seeds; colour and shape are h*.",
        partial(draw_vertices, panels),
        len(panels),
    )
    return Section(name="edges-or-vertices", title="Edges or vertices", figures=[drawn])


def _none(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def layers(results: StudyResults) -> Section:
    """What each layer caches to hold a graph."""
    table = costs(results)
    size = ["graph", "m", "d_model", "degree", "n_edges", "setting"]
    table = table.sort_values("max_steps", kind="stable")
    table = table.drop_duplicates([*size, "model"], keep="last").sort_index()
    steps, first = span([*table["max_steps"]]), table["model"].iloc[0]
    seen = table.loc[table["cached"].notna() | table["cached_low"].notna(), "model"].nunique()
    drawn = Figure(
        "layers",
        "Numbers that a layer caches for each token, at its cheapest threshold within "
        f"{steps} steps. Dashed in every panel: {first}. Colour and shape are the head count.",
        partial(draw_layers, table),
        seen,
    )
    rows = {
        "cell": [
            f"({m}, {d_model}{', ' + setting if setting else ''})"
            for m, d_model, setting in table[["m", "d_model", "setting"]].itertuples(index=False)
        ],
        "layer": table["model"],
        "cached": _ranged(table, "cached", "cached_low", "cached_high"),
        "h": table["cached_h"],
        "d_k": table["cached_d_k"],
        "relations per cached number": [
            MISSING if pd.isna(one) else three_digits(one) for one in table["per_cached"]
        ],
        "parameters": _ranged(table, "parameters", "parameters_low", "parameters_high"),
    }
    caption = (
        "Each layer at its cheapest threshold over head counts and learning rates; in brackets, "
        "the range if the threshold lies anywhere in its interval."
    )
    listed = Table(name="table-layers", caption=caption, rows=pd.DataFrame(rows))
    figures = [drawn] if seen else []  # of a study that has just begun, nothing is known
    return Section(name="by-layer", title="Layers", figures=figures, tables=[listed])


def splits(results: StudyResults) -> Section | None:
    """Accuracy of every split of D_K among heads."""
    table, names = accuracy(results), _names(results.study)
    if table.empty:
        return None
    drawn = Figure(
        "accuracy",
        "Mean test accuracy of each head count at each D_K, with its 95 % interval over seeds. "
        "Head counts at one D_K stand side by side.",
        partial(draw_accuracy, table, names),
        table["cell_id"].nunique(),
    )
    ends = table[["accuracy", "low", "high"]].itertuples(index=False, name=None)
    gained = table[["gain", "gain_low", "gain_high"]].itertuples(index=False, name=None)
    rows = {
        "cell": table["cell_id"].map(names),
        "D_K": table["D_K"],
        "h": table["h"],
        "accuracy": [real_range(*row) for row in ends],
        "gain over one head": [
            real_range(gain, low, high, signed=True) for gain, low, high in gained
        ],
        "answered NULL": [MISSING if pd.isna(one) else f"{one:.3f}" for one in table["null_rate"]],
    }
    caption = "Means over seeds with 95 % intervals; gains are paired by seed."
    listed = Table(name="table-accuracy", caption=caption, rows=pd.DataFrame(rows))
    return Section(name="splits", title="Accuracy by split", figures=[drawn], tables=[listed])


def what_heads_can_do(results: StudyResults) -> Section:
    """Where heads of ample width are impossible, hard and easy."""
    table = phases.phases(results)
    drawn = Figure(
        "phases",
        "Heads as wide as d_model or wider; a tile is a graph of m′ relations. Easy, slow: "
        "training passes within the smallest, or only a larger step limit. Hard: it does not, "
        "though weights are known that are right on all pairs of every draw. Impossible: proved, "
        "for every draw.",
        partial(draw_phases, table),
        table["h"].nunique(),
    )
    rows = {
        "(m, d_model)": [f"({one.m}, {one.d_model})" for one in table.itertuples()],
        "h": table["h"],
        "passes within": table["passes_within"],
        "exact weights known": [f"{one.exact} of {one.draws}" for one in table.itertuples()],
        "proved impossible": [f"{one.proved} of {one.draws}" for one in table.itertuples()],
        "phase": table["phase"],
    }
    caption = "Passes within: the smallest step limit at which training passes."
    listed = Table(name="table-phases", caption=caption, rows=pd.DataFrame(rows))
    title = "Impossible, hard and easy"
    return Section(name="easy-or-hard", title=title, figures=[drawn], tables=[listed])


def of_its_room(results: StudyResults) -> Section:
    """What the room of the study's model shows."""
    room = results.study.record.room
    assert room is not None
    section: Section = resolve_name(room.section).section(results)
    return section


def measured(results: StudyResults) -> Section:
    """How the study was measured: what differs from the paper, cost, versions, the study file."""
    study, apart = results.study, protocol.differences(results.study)
    source = f"“The paper” is {paper.AUTHOR}, {paper.TITLE}, {paper.VENUE} ({paper.ARXIV})."
    words = [protocol.cost(results), protocol.origins(results), source]
    if apart.empty:
        words.insert(0, "No setting of training or of judging differs from the paper.")
    listed = Table(name="table-differs", caption="What differs from the paper.", rows=apart)
    return Section(
        name="measured",
        title="How it was measured",
        words=words,
        tables=[] if apart.empty else [listed],
        code=study.to_yaml(),
        folded=True,
    )


Make = Callable[[StudyResults], Section | None]

CONTENTS: dict[str, tuple[Make, ...]] = {
    "growth": (vertices, growth, cells, heads, scores, which_law, the_paper, measured),
    "curves": (scores, cells, heads, growth, the_paper, measured),
    "training time": (
        *(vertices, training_time, cells, heads, growth, scores, which_law, the_paper),
        measured,
    ),
    "layers": (layers, cells, measured),
    "embeddings": (of_embeddings, cells, heads, scores, measured),
    "accuracy": (splits, measured),
    "phases": (what_heads_can_do, measured),
    "room": (of_its_room, cells, scores, measured),
}
"""The sections of each kind of study, in order; one that has nothing to show is left out."""
