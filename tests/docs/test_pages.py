"""What the pages say of themselves: links resolve, names are there, tables are current."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import write
from rgr_dist import cli
from rgr_dist.cli import options
from rgr_dist.store.store import STUDY_TABLES
from rgr_dist.study.yaml_document import shipped_studies
from tables import studies
from tests.docs.pages import OTHERS, PAGES, README, ROOT, anchors, blocks, prose, verbs

LANGUAGES = {"sh", "yaml", "python", "text"}
"""Of text, output alone."""
PROGRAMS = {"rgr", "make", "pip", "ray", "python", "."}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_every_link_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            assert target.startswith("https://"), target
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_program_writes_is_as_it_would_write_it_now(page: Path) -> None:
    text = page.read_text("utf-8")
    assert write.rewritten(text) == text, "run: python docs/write.py"
    assert not re.search(r"@\w+@", text), "a figure was to be filled in"
    assert not re.search(r"^\s*<!-- =", text, re.MULTILINE), "GitHub sets such a line as HTML"


@pytest.mark.slow
def test_the_costs_of_studies_are_those_that_are_planned_now() -> None:
    assert studies.planned() == studies.PLANS.read_text("utf-8"), "run: docs/write.py --plans"


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 150
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in text
        assert f" {page.name}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    for block in [*blocks("python", README), *blocks("yaml", README), *blocks("sh", README)]:
        assert len([line for line in block.text.splitlines() if line]) <= 10


def test_every_stored_table_has_its_columns_told() -> None:
    told = (ROOT / "docs/schema.md").read_text("utf-8")
    for table in ("runs", *STUDY_TABLES):
        assert f"<!-- written: columns {table} -->" in told


def test_every_shipped_study_has_its_line_among_the_figures() -> None:
    told = (ROOT / "docs/figures.md").read_text("utf-8")
    assert [name for name in shipped_studies() if f"`{name}`" not in told] == []


def test_a_study_took_as_much_by_its_figure_as_by_the_table_of_whole_studies() -> None:
    text = re.sub(r"<!--.*?-->", "", (ROOT / "docs/figures.md").read_text("utf-8"))
    for row in stored("whole_studies")["studies"]:
        (told,) = re.findall(rf"^\|[^|]*\| `{row['study']}` \|(.*)$", text, re.MULTILINE)
        runs, steps, _ = told.split("|", 2)
        assert float(runs.replace(",", "")) == pytest.approx(row["runs"], rel=0.02)
        assert 1e6 * float(steps.split()[0]) == pytest.approx(row["steps"], rel=0.02)


def test_every_block_is_in_a_language_that_is_tested() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(\w+)$", page.read_text("utf-8"), re.MULTILINE)
        assert set(fences) <= LANGUAGES, page


def test_no_study_of_a_script_has_the_name_of_another_that_a_page_shows() -> None:
    """They share the store of a reader who follows one page after another."""
    made = re.findall(r'Study\(name="(.+?)"', "".join(b.text for b in blocks("python")))
    files = re.findall(r"^name: (\S+)$", "".join(b.text for b in blocks("yaml")), re.MULTILINE)
    assert len(made) >= 2
    assert len({*made, *files, *shipped_studies()}) == len([*made, *set(files), *shipped_studies()])


def test_commands_name_what_is_there() -> None:
    """Those of other programs, which no test can run: targets, extras and files exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    makefile = (ROOT / "Makefile").read_text()
    studies = re.findall(r"^name: (\w+)$", "".join(b.text for b in blocks("yaml")), re.MULTILINE)
    written = {f"{name}.yaml" for name in studies}  # which a page shows, to be saved
    for command in (command for block in blocks("sh") for command in block.commands):
        assert command[0] in PROGRAMS, command
        if command[0] == "make":
            assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command
        for word in command:
            if re.fullmatch(r"[\w/-]+\.(yaml|txt)", word) and word not in written:
                assert (ROOT / word).exists(), word
            for extra in re.findall(r"^\.\[(.+)\]$", word):
                assert set(extra.split(",")) <= set(extras), word


def test_every_exit_status_is_told_and_no_other() -> None:
    ends = {value for name, value in {**vars(cli), **vars(options)}.items() if "EXIT_" in name}
    told = (ROOT / "docs/command-line.md").read_text("utf-8")
    assert {int(status) for status in re.findall(r"^\| (\d+) \|", told, re.MULTILINE)} == {0, *ends}


def test_every_verb_is_told_and_no_other() -> None:
    shown = [
        command[1] for block in blocks("sh") for command in block.commands if command[0] == "rgr"
    ]
    assert set(shown) == verbs()
    named = [
        verb
        for page in [*PAGES, *OTHERS]
        for verb in re.findall(r"`rgr ([a-z][a-z-]*)", prose(page))
    ]
    assert set(named) <= verbs()


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / f"docs/results/{name}.json").read_text("utf-8"))
    return found


def test_the_readme_counts_the_phases_of_one_head() -> None:
    """By training, certificates and known weights alone, not by what their phases are called."""
    kept = stored("phases")
    short, long = kept["limits"]
    one = [row for row in kept["rows"] if row["h"] == 1]
    passes = [row for row in one if row["passes_within"] is not None]
    proved = [row for row in one if row["proved"] == row["draws"]]
    hard = [row for row in one if row not in passes and row["exact"] == row["draws"]]
    within = [sum(row["passes_within"] == limit for row in passes) for limit in (short, long)]
    text = README.read_text("utf-8")
    assert f"Of {len(one)} sizes, one trained head passes at {sum(within)}: at {within[0]}" in text
    assert f"within 20,000 steps, at {within[1]} more within 640,000. Those {sum(within)}" in text
    load = max(row["load"] for row in passes)
    assert f"\\le {load:.2f}$. At the {len(proved)} sizes where this ratio is" in text
    assert f"at least {min(row['load'] for row in proved):.2f}, no weights of one head" in text
    assert ", ".join(f"({row['m']}, {row['d_model']})" for row in hard) in text
    assert not [row for row in passes if row in proved]
    left = {(row["m"], row["d_model"]) for row in one if row not in passes}
    eight = [row for row in kept["rows"] if row["h"] == 8 and row["passes_within"] is not None]
    trained = sum((row["m"], row["d_model"]) in left for row in eight)
    assert f"neither limit, eight pass at {trained} of {len(left)} sizes<" in text


def test_the_cells_of_the_base_grid_cost_together_what_its_search_costs() -> None:
    cells = sum(row["steps"] for row in stored("growth")["cells"])
    (whole,) = (
        row["training_steps"]
        for row in stored("search_cost")["rows"]
        if (row["study"], row["strategy"]) == ("base-grid", "adaptive")
    )
    assert cells == pytest.approx(whole, rel=0.05)


def power(
    widths: dict[tuple[int, int], tuple[int, int]], joined: str = "{:.2f} [{:.2f} to {:.2f}]"
) -> str:
    """Of D_K and heads by cell: the power and its interval."""
    return joined.format(*fitted(widths)[:3])


def fitted(widths: dict[tuple[int, int], tuple[int, int]]) -> tuple[float, float, float, float]:
    """A power, its interval and the scatter about it: interval likelihood, by Nelder and Mead."""
    x = np.log([m * np.log2(m) / d_model for m, d_model in widths])
    D_K, h = np.array([*widths.values()]).T

    def unlikely(free: np.ndarray, slope: float) -> float:
        ends = [(np.log(width) - free[0] - slope * x) / np.exp(free[1]) for width in (D_K, D_K - h)]
        return -float(np.log(stats.norm.cdf(ends[0]) - stats.norm.cdf(ends[1])).sum())

    def at(slope: float) -> Any:
        start = [float((np.log(D_K) - slope * x).mean()), -0.5]
        return optimize.minimize(unlikely, start, (slope,), method="Nelder-Mead")

    def profile(slope: float) -> float:
        return float(at(slope).fun)

    best = optimize.minimize_scalar(profile, bounds=(0.9, 1.7), method="bounded")
    n = len(widths)
    fall = n / 2 * np.log1p(stats.f.ppf(0.95, 1, n - 2) / (n - 2))  # least squares has its t there
    ends = [
        optimize.brentq(lambda slope: profile(slope) - best.fun - fall, best.x, best.x + side)
        for side in (-0.4, 0.4)
    ]
    scatter = float(np.exp(at(best.x).x[1])) * np.sqrt(n / (n - 2))
    return float(best.x), ends[0], ends[1], scatter


def test_the_powers_and_falls_of_the_readme_follow_from_stored_thresholds() -> None:
    text = README.read_text("utf-8")
    base = {(row["m"], row["d_model"]): row for row in best_of("base-grid")}
    made = [*best_of("constructions"), *best_of("from-constructed")]
    gains = stored("budget.training-time")["gains"]
    last = {(row["m"], row["d_model"]): row for row in gains if row["max_steps"] == 640_000}
    lower = [
        cell
        for cell, row in last.items()
        if row["D_K"] < base[cell]["D_K_first"] and cell != (512, 16)
    ]
    assert len(lower) == 11
    assert "<!-- =budget lower -->eleven<!-- / --> of the twelve are lower" in text
    apart = [last[cell]["D_K_high"] < base[cell]["D_K_low"] for cell in last]
    assert f"=budget apart -->{('eight', 'nine', 'ten')[sum(apart) - 8]}<" in text
    widths = [*made, *(row for row in gains if row["D_K"])]
    every = [(row["m"], row["d_model"], row["D_K"], row["h_star"]) for row in widths]
    told = [(row["possible_D_K"], row["possible_h"]) for row in base.values()]
    every += [(*cell, *own) for cell, own in zip(base, told, strict=True)]
    known = {cell: min((D_K, h) for m, d, D_K, h in every if (m, d) == cell) for cell in base}
    trained, longer = (
        {cell: (row["D_K"], row["h_star"]) for cell, row in rows.items()} for rows in (base, last)
    )
    shares = [100 * (1 - last[cell]["D_K"] / base[cell]["D_K_first"]) for cell in lower]
    assert f"=budget falls -->{min(shares):.0f} to {max(shares):.0f} %<" in text
    for name, own in (("budget", longer), ("known", known)):
        assert f"={name} power-wide -->{power(wide(own))}<" in text
        assert f"={name} power -->{power(own)}<" in text
    assert f"=base-grid power -->{power(trained)}<" in text
    theory = (ROOT / "docs/theory.md").read_text("utf-8")
    assert f"=base-grid power-wide -->{power(wide(trained))}<" in theory


def wide(widths: dict[tuple[int, int], tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Without the cells that the theorems' precondition leaves out."""
    return {cell: own for cell, own in widths.items() if cell[1] > 16 or cell[0] <= 64}


def best_of(study: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stored(f"{study}.thresholds")["printed"]["best"]
    return found


def misfit(D_K: Any, below: Any, seed_sd: Any, cells: list[tuple[int, int]]) -> str:
    """The scatter about the power law, and p of χ² by weighted least squares on the ends."""
    sd = np.hypot(np.log(D_K / below) / np.sqrt(12), seed_sd)
    x, y = np.log([m * np.log2(m) / d_model for m, d_model in cells]), np.log(D_K * below) / 2
    far = y - np.polynomial.Polynomial.fit(x, y, 1, w=1 / sd)(x)
    p = stats.chi2.sf(((far / sd) ** 2).sum(), len(cells) - 2)
    ends = zip(D_K, D_K - below, strict=True)
    scatter = fitted(dict(zip(cells, ends, strict=True)))[3]
    return f"{100 * scatter:.0f} % ($p \\approx 10^{{{round(np.log10(p))}}}$)"


def test_the_readme_tells_how_far_cells_lie_from_their_power_law() -> None:
    rows = [row for row in stored("budget.training-time")["gains"] if row["max_steps"] == 640_000]
    text, time, wrong = (
        (ROOT / page).read_text("utf-8")
        for page in ("README.md", "docs/training-time.md", "docs/what-we-got-wrong.md")
    )
    told = []
    for some in ([row for row in rows if row["d_model"] > 16 or row["m"] <= 64], rows):
        D_K, below = (
            np.array([row["D_K"] - less * row["h_star"] for row in some]) for less in (0, 1)
        )
        seeds = np.log([row["D_K_high"] / row["D_K_low"] for row in some]) / 3.92
        told.append(misfit(D_K, below, seeds, [(row["m"], row["d_model"]) for row in some]))
    assert f"=budget misfits -->{' and '.join(told)}, while seeds" in time
    scatters = " and ".join(one.partition(" (")[0] for one in told)
    assert f"=budget scatters -->{scatters}, while seeds" in text
    cells = stored("base-grid.fit")["printed"]["cells"]
    D_K, below, seeds = (
        np.array([row[name] for row in cells]) for name in ("D_K_passes", "D_K_fails", "seed_sd")
    )
    far = misfit(D_K, below, seeds, [(row["m"], row["d_model"]) for row in cells])
    assert f"=base-grid misfit -->{far}, while seeds" in wrong
    assert f"=base-grid scatter -->{far.partition(' (')[0]}, while seeds" in text
