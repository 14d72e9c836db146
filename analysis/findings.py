"""What a study found, in one sentence; and what to know about it, in another."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rgr_dist.analysis.accuracy import accuracy
from rgr_dist.analysis.embeddings import compares_embeddings
from rgr_dist.analysis.embeddings import finding as of_embeddings
from rgr_dist.analysis.growth import (
    LEAST_CELLS,
    Group,
    groups,
    main_cells,
    papers_line,
    with_numbers,
)
from rgr_dist.analysis.laws import PAPERS, POWER, Law, apart
from rgr_dist.analysis.layers import compares_layers, costs
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.tables import best
from rgr_dist.analysis.training_time import gains
from rgr_dist.analysis.wording import number, plural, three_digits, with_limits, with_range
from rgr_dist.paper import LAWS as PUBLISHED
from rgr_dist.paper import is_narrow
from rgr_dist.search.seed_test import t_interval

MISSES = 3.0
"""A law that cells miss by so many times what chance explains does not describe them."""


def finding(results: StudyResults) -> str:
    """The finding of a study of layers, accuracy, step limits or thresholds.

    One sentence of at most 20 words, with one number and its interval.
    """
    study = results.study
    if compares_layers(study):
        return _layers(costs(results)) or _by_layer(best(results))
    if study.record.finds == "accuracy":
        return _accuracy(accuracy(results))
    if compares_embeddings(study) and (told := of_embeddings(results)):
        return told
    longer = _longer(gains(results)) if study.has_budgets else ""
    return _edges_and_vertices(results) or longer or _growth(results)


def _edges_and_vertices(results: StudyResults) -> str:
    """By which powers D_K* grows with m′ and with m; empty where these are not told apart."""
    law = apart(group.laws) if (group := main_group(results)) else None
    if law is None:
        return ""
    _, edges, m = map(with_limits, law.theta, law.low, law.high)
    return f"D_K* grows as m′^{edges} at equal m, and as m^{m} at equal m′, over {law.n} cells."


def _growth(results: StudyResults) -> str:
    """How D_K* grows; or where it lies, where no law can be fitted."""
    table, group = best(results), main_group(results)
    found = table[table["D_K"].notna()]
    if found.empty:
        return _no_threshold(table)
    so_far = " so far" if (table["status"] == "open").any() else ""
    told = group is not None and group.laws and (group.is_ranked or not _is_missed(group))
    if group is not None and told and group.cells["scale"].nunique() > 1:
        over = f"over {plural(len(group.cells), 'cell')}{so_far}"
        return f"{in_brief(told_law(group))} {over}."
    first = found.iloc[0]
    if len(found) == 1:
        width = with_range(first["D_K"], first["D_K_low"], first["D_K_high"])
        at, h = f"m = {first['m']}, d_model = {first['d_model']}", first["h_star"]
        heads = "one head needs" if h == 1 else f"{h} heads need"
        return f"At {at}, {heads} D_K* = {width}{so_far}."
    if len(found) <= 3 and found["cell"].nunique() == len(found):
        widths = [f"{row['D_K']} at {row['cell']}" for row in found.to_dict("records")]
        return f"D_K* is {', '.join(widths[:-1])} and {widths[-1]}{so_far}."
    least, most = found["D_K"].min(), found["D_K"].max()
    return f"D_K* lies between {least} and {most} in {plural(len(found), 'cell')}{so_far}."


def told_law(group: Group) -> Law:
    """The law that a headline tells and a figure draws: the paper's form, with a free power where
    there are cells enough; the best if neither can be fitted."""
    wanted = POWER if group.is_ranked else PAPERS
    return next((law for law in group.laws if law.formula == wanted), group.laws[0])


def in_brief(law: Law) -> str:
    """A law with its most telling number and that one's limits, without a full stop."""
    names = law.by_name(law.theta)
    telling = next(name for name in "akc" if name in names)
    words = with_numbers(law, telling)
    if telling == "a":  # a power says how it grows, whatever the constant
        return f"D_K* grows as {words.split(' · ', 1)[1]}"
    return f"D_K* ≈ {words}"


def _no_threshold(table: pd.DataFrame) -> str:
    cells = plural(len(table), "cell")
    if (table["status"] == "open").any():
        return f"No threshold yet: the search of {cells} is not finished."
    return f"No threshold in {cells}: no head count passes at any width allowed."


def _longer(table: pd.DataFrame) -> str:
    """How far D_K* falls from each cell's smallest step limit to its largest; empty if unknown."""
    falls, steps = [], set()
    for _, own in table.groupby("family", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        if (
            "open" not in (first["status"], last["status"])
            and own["D_K"].iloc[[0, -1]].notna().all()
        ):
            falls.append(math.log(last["D_K"] / first["D_K"]))
            steps.add((int(first["max_steps"]), int(last["max_steps"])))
    if not falls:
        return ""
    over = "from the smallest step limit to the largest"
    if len(steps) == 1:
        over = "from {:,} to {:,} training steps".format(*steps.pop())
    fall, (least, most) = _shares(falls)
    interval = f" [{least:.0f}–{most:.0f}]" if len(falls) > 1 else ""
    return f"D_K* falls by {fall:.0f} %{interval} {over}, over {plural(len(falls), 'cell')}."


def _shares(falls: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The geometric mean of falls, given as logarithms, and its 95 % t-interval, in per cent."""
    mean = float(np.mean(falls))
    low, high = t_interval(falls) or (mean, mean)
    return -100 * math.expm1(mean), (-100 * math.expm1(high), -100 * math.expm1(low))


def _accuracy(table: pd.DataFrame) -> str:
    """What splitting a D_K among heads gains at the most."""
    if table.empty:
        return "No run yet."
    gained = table[table["gain_low"].notna()]
    row = (
        (gained if len(gained) else table)
        .sort_values("gain" if len(gained) else "accuracy")
        .iloc[-1]
    )
    at, heads = f"m = {row['m']}, d_model = {row['d_model']}", plural(row["h"], "head")
    if gained.empty:
        return f"At {at}, {heads} of D_K = {row['D_K']} reach accuracy {row['accuracy']:.3f}."
    gain, low, high = (number(row[name], ".3f") for name in ("gain", "gain_low", "gain_high"))
    return f"At {at}, {heads} gain {gain} [{low}–{high}] accuracy over one of D_K = {row['D_K']}."


def _layers(table: pd.DataFrame) -> str:
    """How many times the relations of the next layer the best one holds; empty if unknown."""
    size = ["graph", "m", "d_model", "degree", "n_edges", "setting"]
    table = table.sort_values("max_steps").drop_duplicates([*size, "model"], keep="last")
    held = table.pivot(index=size, columns="model", values="per_cached").astype("float64")
    held = held.dropna(axis=1, how="all").dropna()
    logs = pd.DataFrame(np.log(held), held.index, held.columns)
    if logs.empty or logs.shape[1] < 2:
        return ""
    first, second = logs.mean().sort_values(ascending=False).index[:2]
    gap = (logs[first] - logs[second]).tolist()
    low, high = (math.exp(end) for end in t_interval(gap) or (-math.inf, math.inf))
    times = with_limits(
        math.exp(float(np.mean(gap))), low or None, high if high < math.inf else None
    )
    over = plural(len(gap), "size")
    return f"{first} holds {times} times {second}'s relations per cached number, over {over}."


def _by_layer(table: pd.DataFrame) -> str:
    """In how many cells each layer has a threshold, where no two layers can be compared."""
    found = table["D_K"].notna()
    if not found.any():
        return _no_threshold(table)
    so_far = " so far" * bool((table["status"] == "open").any())
    each = found.groupby(table["model"], sort=False)
    told = [f"{own.sum()} of {plural(len(own), 'cell')} of {model}" for model, own in each]
    return f"A width passes in {', '.join(told)}{so_far}."


def main_group(results: StudyResults) -> Group | None:
    """The cells of the usual protocol at their largest step limits; None if there are none."""
    alike = (one for one in groups(results) if one.protocol == "" and one.max_steps is None)
    return next(alike, None)


def _is_missed(group: Group) -> bool:
    """Whether the cells scatter about the first law by far more than chance explains."""
    return group.noise is not None and group.laws[0].scatter > MISSES * group.noise


def noise_sentence(results: StudyResults) -> str:
    """How far the cells scatter about the first law, beside what chance explains; else empty."""
    group = main_group(results)
    if group is None or not group.laws or group.noise is None:
        return ""
    scatter, noise = (f"{100 * share:.0f} %" for share in (group.laws[0].scatter, group.noise))
    law = "the best law" if group.is_ranked else "this law"
    misses = ", so it does not describe them" * _is_missed(group)
    return f"Cells scatter by {scatter} about {law}; seeds and whole d_k explain {noise}{misses}."


def which_law(results: StudyResults) -> str:
    """Which law the cells single out; or which they do not tell apart, or that they are too few."""
    group = main_group(results)
    if group is None or not group.laws:
        return ""
    if not group.is_ranked:
        few = plural(len(group.cells), "cell")
        return f"{few} are too few to choose between laws; that takes {LEAST_CELLS}."
    alike = [law.formula for law in group.alike]
    if len(alike) == 1:
        return f"Of {len(group.laws)} laws these cells single out {alike[0]}."
    return f"These cells do not tell apart {', '.join(alike[:-1])} and {alike[-1]}."


def caveat(results: StudyResults) -> str:
    """What the paper's nine cells say, where a study has others beside them; empty elsewhere."""
    study, cells = results.study, main_cells(results)
    kinds = {(one.model_name, one.graph.family, one.embedding.family) for one in study.cells}
    if (
        kinds != {("max", "permutation", "gaussian")}
        or study.has_budgets
        or compares_embeddings(study)
    ):
        return ""
    sizes = zip(cells["m"], cells["d_model"], strict=True)
    narrow = np.array([is_narrow(*size) for size in sizes], dtype=bool)
    line = papers_line(cells[~narrow]) if narrow.any() else None
    if line is None or line.n < 3:
        return ""
    ours = with_limits(line.slope, line.low, line.high)
    return (
        "Leaving out cells of d_model = 16 and m > 64, as the paper does, D_K* ≈ "
        f"{ours} · m′ log₂ m / d_model over {line.n} cells; the paper has "
        f"{three_digits(PUBLISHED['D_K_wide'].slope)}."
    )
