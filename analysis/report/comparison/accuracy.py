"""Two studies of accuracy: every split among heads that both have, and the difference."""

from __future__ import annotations

import numpy as np

from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.report.comparison.pairs import Names, Pair, by_accuracy, partners_of
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.splits.accuracy import splits_of
from rgr_dist.analysis.wording import number, plural, real_range


def splits(pair: Pair, names: Names) -> Section | None:
    """Accuracy of every split that both studies have; None where they search thresholds."""
    if not by_accuracy(pair):
        return None
    rows = shared_splits(pair)

    table = Table(
        name="table-splits",
        caption="Means over seeds, 95 % t-intervals in brackets.",
        columns=[
            cell_column(),
            Column("D_K", "D_K"),
            Column("h", "h"),
            Column(f"accuracy, {names[0]}", "words_a", "accuracy_a"),
            Column(f"accuracy, {names[1]}", "words_b", "accuracy_b"),
            Column("difference", "difference", form="+.3f"),
        ],
        rows=rows,
    )
    files = {f"splits-{side}": splits_of(t) for side, t in zip("ab", pair, strict=True)}
    return Section(name="splits", title="Accuracy", shown=(table,), files=files)


def shared_splits(pair: Pair) -> list[Row]:
    """A row for each split of both studies."""
    partners = partners_of(pair)
    second = named(pair[1], splits_of(pair[1]))
    others = {(row["cell_id"], row["D_K"], row["h"]): row for row in second}
    rows = []
    for one in named(pair[0], splits_of(pair[0])):
        other = others.get((partners.get(one["cell_id"], ""), one["D_K"], one["h"]))
        if other is None:
            continue
        row = {name: one[name] for name in ("anchor", "short", "key", "D_K", "h")}
        for side, of in (("a", one), ("b", other)):
            row[f"accuracy_{side}"] = of["accuracy"]
            row[f"words_{side}"] = real_range(of["accuracy"], of["low"], of["high"])
        rows.append(row | {"difference": other["accuracy"] - one["accuracy"]})
    return rows


def accuracy_words(pair: Pair, names: Names) -> list[str]:
    rows = shared_splits(pair)
    if not rows:
        return ["No split among heads has runs in both."]
    gains = [row["difference"] for row in rows]
    mean = number(float(np.mean(gains)), "+.3f")
    over = plural(len(rows), "split")
    pair_ = f"the accuracy of {names[1]} minus the accuracy of {names[0]}"
    return [f"Over {over}, {pair_} is {mean} on average."]
