"""The studies that ship: what each asks, its cells, what it costs, and its figure of the paper."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rgr_dist.study.cell import Cell
from rgr_dist.study.shipped import about
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from rgr_dist.study.yaml_document import shipped_studies, shipped_text
from tables.markdown import plain, table

PLANS = Path(__file__).parent.parent / "results" / "plans.json"
"""What ``rgr plan`` says of each study with nothing stored: runs and steps."""


@cache
def loaded(name: str) -> Study:
    """A shipped study; one that needs files is loaded with random vectors in their place."""
    needs_files = "family: table" in shipped_text(name)
    return load_study(name, ["embedding={family: gaussian}"] if needs_files else ())


def asked(name: str) -> str:
    """What the comment at the head of a study's file asks, without its place and its cost."""
    head = shipped_text(name).partition("\nname:")[0]
    text = " ".join(line.lstrip("#").strip() for line in head.splitlines())
    return text.partition(" Paper: ")[0]


def cells(listed: Sequence[Cell]) -> str:
    """``(64, 16), (64, 32)``, or how many and from where to where."""
    sizes = list(dict.fromkeys((cell.m, cell.d_model) for cell in listed))
    more = f", {len(listed)} cells in all" if len(listed) > len(sizes) else ""
    if len(sizes) <= 4:
        return ", ".join(f"({m}, {d})" for m, d in sizes) + more
    m, d_model = map(_from_to, zip(*sizes, strict=True))
    return f"{len(sizes)} sizes, m {m}, d_model {d_model}{more}"


def _from_to(sizes: Sequence[int]) -> str:
    """``64 to 512``, or the size where there is one alone."""
    low, high = min(sizes), max(sizes)
    return f"{low}" if low == high else f"{low} to {high}"


def _listed(sizes: Sequence[int]) -> str:
    """``1, 2, 4``; ``1 to 32`` of every integer."""
    is_every = len(sizes) > 2 and list(sizes) == list(range(sizes[0], sizes[-1] + 1))
    return _from_to(sizes) if is_every else ", ".join(map(str, sizes))


def cost(name: str) -> str:
    """Runs and steps by ``rgr plan`` with nothing stored, in its words."""
    plan = json.loads(PLANS.read_text("utf-8"))["studies"][name]
    unit = "projections" if loaded(name).cells[0].record.task == "construction" else "steps"
    if loaded(name).cells[0].record.algorithm == "one-head":
        return f"about {plan['runs_left']:,} runs"
    unit = "batches" if loaded(name).cells[0].record.task == "matching" else unit
    return f"about {plan['runs_left']:,} runs, {_rounded(plan['steps_left'])} {unit}"


def _rounded(steps: int) -> str:
    return f"{steps / 1e6:.2g} million" if steps < 1e7 else f"{steps / 1e6:,.0f} million"


def shipped() -> str:
    """A table of all of them, then a section for each."""
    rows = []
    for name in shipped_studies():
        told = about(name)
        sizes = cells(loaded(name).cells)
        cost = told["on two cores"]
        rows.append([f"[`{name}`](#{name})", plain(told["question"]), told["paper"], sizes, cost])
    first = table(["study", "asks", "paper", "cells (m, d_model)", "on two cores"], rows)
    return "\n\n".join([first, *map(_section, shipped_studies())])


def _section(name: str) -> str:
    study = loaded(name)
    search = study.search
    arms = search.arms if search.arms == "all" else _listed(search.arms)
    settings = "heads" if search.axis == "d_k" else search.sizes.shown(search.sizes.arm)
    models = list(dict.fromkeys(cell.model_name for cell in study.cells))
    names = ", ".join(f"`{one}`" for one in models)
    model = (
        f"{len(models)} layers" if len(models) > 3 else f"Model{'s' * (len(models) > 1)} {names}"
    )
    how = f"{model}; {settings} {arms}; {search.seeds} seeds"
    if search.total:
        how += f"; d_vo = {search.total} − d_qk"
    elif search.mode == "grid":
        how += f"; {'D_K' if search.D_K else 'd_vo'} {_listed(search.widths)}"
    else:
        how += f"; passes at {search.target:g}"
    if search.confirm_seeds:
        how += f", confirmed on {search.confirm_seeds} fresh seeds"
    return f"## {name}\n\n{plain(asked(name))}\n\n{how}. By `rgr plan`, {cost(name)}."


def planned() -> str:
    """What ``rgr plan`` says of every study with nothing stored, as ``PLANS`` has it."""
    from rgr_dist.planning.listing import plan_study
    from rgr_dist.store.store import Store

    plans: dict[str, Any] = {}
    for name in shipped_studies():
        with tempfile.TemporaryDirectory() as empty:
            _, facts = plan_study(loaded(name), Store(empty))
        plans[name] = {key: facts[key] for key in ("runs_left", "steps_left", "at_least")}
    command = "rgr plan STUDY --format json, with nothing stored"
    return json.dumps({"command": command, "studies": plans}, indent=1) + "\n"


PIECES: dict[str, Callable[[], str]] = {"studies": shipped}
