"""Thresholds as a person reads them: ``18 [14–20]``, ``9 ✓ .995 | 8 ✗ .984``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rgr_dist.analysis.wording import MISSING, plural, with_limits, with_range
from rgr_dist.cli.listing import Format, Row, print_listing, say
from rgr_dist.study.models import MODELS
from rgr_dist.study.study import Study

COLUMNS = (
    "cell m d_model degree max_steps D_K* h* h d_qk d_k d_vo D_K D_V status certificate confirmed"
    " before_fresh_seeds possible one_head limited_by rank_of_database rank_of_logits"
    " bits_per_parameter"
)
MEANINGS = {
    "limited by optimisation": "weights that pass are known at a smaller D_K",
    "limited by budget": "longer training passes at a smaller D_K, or D_K still falls",
    "limited by proved": "no weights of one head are right on all pairs of any draw",
    "limited by unknown": "no smaller D_K is known to pass; search: {retest_steps: 4} would also "
    "try longer training",
    "possible": "the smallest D_K at which known weights pass, and where they come from",
    "bits per parameter": "bits of the graph for each weight of the keys and queries, at D_K",
    "censored": "no pass up to the largest width",
    "pruned": "no width near the best head's D_K passes, so not searched further",
    "inconsistent": "passes below a fail",
    "open": "not finished, or a run failed",
}
"""What columns and values that a reader cannot guess mean."""


def print_thresholds(
    study: Study, sections: Mapping[str, Sequence[Row]], best_alone: bool = False
) -> None:
    """Print thresholds as a person reads them, with what the signs mean.

    Args:
        sections: ``thresholds`` and ``best``, as JSON has them.
        best_alone: leave out the thresholds of each head count.
    """
    if "order" in sections:
        _print_layers(sections["order"])
        return
    names = ("best",) if best_alone else ("thresholds", "best")
    shown = {name: [shown_row(row, study) for row in sections[name]] for name in names}
    print_listing(shown, Format.TABLE, show=COLUMNS.split())
    say("; ".join([*_signs(study, best_alone), *reach(study)]))
    rows = [row for name in names for row in shown[name]]
    seen = {column.replace("_", " ") for row in rows for column in row if row[column]}
    seen |= {row["status"] for row in rows if "status" in row}
    seen |= {f"limited by {row['limited_by']}" for row in rows if "limited_by" in row}
    if study.has_budgets or study.record.algorithm is not None:
        seen.discard("limited by unknown")  # longer training was tried, or there is none
    for one, meaning in MEANINGS.items():
        if one in seen:
            say(f"{one}: {meaning}")
    if not best_alone:
        _say_where_one_head_is_decided(study, sections["thresholds"])


def _say_where_one_head_is_decided(study: Study, rows: Sequence[Row]) -> None:
    """Where one head passes at no width: name the command that decides if any weights could."""
    if any(cell.embedding.family != "gaussian" for cell in study.cells):
        return  # the command draws only these
    one = {"model": "max", "h": 1, "status": "censored"}
    rows = [row for row in rows if one.items() <= row.items() and row["graph"] != "edges"]
    for row in [row for row in rows if not row["decided_draws"]][:1]:
        degree = f" --degree {row['degree']}" if row["graph"] == "regular" else ""
        sizes = f"--m {row['m']} --d-model {row['d_model']}{degree}"
        say(
            f"next: rgr bounds --one-head {sizes} decides whether any weights of one head are right"
        )


def _print_layers(order: Sequence[Row]) -> None:
    """Print what layers hold per number that they cache, one compression after another."""
    rows = []
    for row in order:
        held = row["per_cached"]
        rows.append(
            {
                **({"setting": row["setting"]} if "setting" in row else {}),
                "m/d_model": f"{row['compression']:g}",
                "steps": row["max_steps"],
                "rank": row["rank"],
                "layer": row["model"],
                "relations per cached number": MISSING
                if held is None
                else with_limits(held, row["low"], row["high"]),
                "like the best": "yes" if row["beside_best"] else "",
            }
        )
    print_listing({"layers": rows}, Format.TABLE)
    say(
        "[low–high]: the range if each threshold lies anywhere in its interval; ?: this end is not "
        "known; –: no threshold is known"
    )


def shown_row(record: Row, study: Study) -> dict[str, Any]:
    """A record of a threshold, or of the best of a cell, with the columns named in ``COLUMNS``."""
    row, total = dict(record), study.search.sizes.total
    for name in ("m", "d_model") if "cell" in row else ():  # its name includes them
        row.pop(name, None)
    if not study.has_budgets:
        row.pop("max_steps")
    elif MODELS.get(row.get("model", ""), study.record).task == "construction":  # not trained
        row["max_steps"] = None
    row[total] = with_range(*(record[f"{total}{end}"] for end in ("", "_low", "_high")))
    if "h_star" in record:
        row["D_K*"] = row.pop("D_K")
        row["h*"] = with_range(record["h_star"], record["h_low"], record["h_high"])
        first = record["D_K_first"]
        row["before_fresh_seeds"] = None if first == record["D_K"] else first
    if "possible_D_K" in record:
        width, D_K, proved = (record[key] for key in ("possible_D_K", "D_K", "proved_draws"))
        is_lower = width is not None and (D_K is None or width < D_K)
        row["possible"] = f"{width}, {record['possible_source']}" if is_lower else None
        draws = f"impossible: {proved} of {record['decided_draws']}"
        row["one_head"] = draws if proved else None
    if "certificate" in record:
        row["certificate"] = certificate_text(record["certificate"], study.search.target)
    if record.get("rank_low") is not None:
        ends = dict.fromkeys(f"{record[end]:,.0f}" for end in ("rank_low", "rank_high"))
        row["rank_of_database"] = "–".join(ends)
        bound = record.get("layer_rank_bound")
        row["rank_of_logits"] = None if bound is None else f"≤ {bound:,}"
    return row


def certificate_text(certificate: Mapping[str, Any] | None, target: float) -> str | None:
    """``9 ✓ .995 | 8 ✗ .984``: the width that passes and the one that fails, with their means.

    A failing mean is never rounded to the passing score or beyond: .9899 becomes .989. If a probe
    stopped early, its number of seeds is added: ``2 ✗ .550 of 2``.
    """
    passed, failed = ((certificate or {}).get(key) or {} for key in ("pass", "fail"))
    parts = []
    width = "d_vo" if "d_vo" in {**passed, **failed} else "d_k"
    if passed.get(width) is not None:
        parts.append(f"{passed[width]} ✓ {_mean(round(1000 * passed['mean_score']))}")
    if failed.get(width) is not None:
        stopped = failed.get("n_seeds", 0) < passed.get("n_seeds", 0)
        of = f" of {failed['n_seeds']}" if stopped else ""
        parts.append(f"{failed[width]} ✗ {_failing_mean(failed['mean_score'], target)}{of}")
    return " | ".join(parts) or None


def _failing_mean(mean: float | None, target: float) -> str:
    if mean is None:
        return "diverged"
    shown = round(1000 * mean)
    if mean < target <= shown / 1000:
        shown = math.floor(1000 * mean)
    elif shown / 1000 <= target < mean:  # an error, which is minimised
        shown = math.ceil(1000 * mean)
    return _mean(shown)


def _mean(thousandths: int) -> str:
    return f"{thousandths / 1000:.3f}".removeprefix("0")


def _signs(study: Study, best_alone: bool) -> list[str]:
    """What the columns and their signs mean."""
    sizes, record = study.search.sizes, study.cells[0].record
    seeds = plural(study.search.seeds, "seed")
    ends = "that of the best setting"
    if sizes.has_rivals:
        ends = "its ends are the lowest of all head counts'"
    meant = [f"{sizes.total}* = h {sizes.value} [interval over {seeds}; {ends}]"]
    if not best_alone:
        meant.insert(0, f"{sizes.total} [its interval over {seeds}; ≥: the smallest not ruled out]")
    if sizes.value == "d_k":
        meant.append(
            "h* [fewest and most heads tried that pass within 10 % of D_K*, or one step, with "
            "scores that a paired t-test cannot tell from those of h*]"
        )
    else:
        meant.append("rank: bounds on the rank of the database and of the layer’s logits")
    if not best_alone:
        meant.append(
            f"certificate: {sizes.value} that passes ✓ and a smaller one that fails ✗, each with "
            f"its mean {record.score}; of N: the probe stopped early, after N seeds"
        )
    return meant


def reach(study: Study) -> list[str]:
    """What every threshold of a study depends on: the step limit, and the widths that were tried.

    If cells have several step limits, a column shows them; a construction is not trained.
    """
    parts = []
    limits = sorted({cell.training.max_steps for cell in study.cells})
    if not study.has_budgets and study.cells[0].record.algorithm is None:
        span = " to ".join(f"{limit:,}" for limit in dict.fromkeys((limits[0], limits[-1])))
        parts.append(f"thresholds within {span} training steps")
    if study.search.mode == "grid":
        parts.append("of a grid: the smallest of its listed widths")
    if study.search.mode == "widest":
        parts.append("d_k = d_model alone was tried: the fewest heads that pass")
    return parts
