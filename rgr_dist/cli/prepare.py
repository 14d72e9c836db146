"""The verbs before a run: the shipped studies, a file to start from, the plan of a study."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing, say
from rgr_dist.cli.options import How, Out, Set, StudyName, as_typed, opened
from rgr_dist.faults import UserError


def studies(how: How = Format.TABLE) -> None:
    """The studies that ship: what each asks, where the paper asks it, and what it costs."""
    from rgr_dist.study.shipped import about
    from rgr_dist.study.yaml_document import shipped_studies

    print_listing({"studies": [*map(about, shipped_studies())]}, how)


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the study, and of its file.")],
    layer: Annotated[
        bool, typer.Option("--layer", help="NAME.py, a layer to start from, instead.")
    ] = False,
) -> None:
    """Write NAME.yaml, a commented study to start from; or NAME.py, a commented attention layer."""
    from importlib.resources import files

    from rgr_dist.study.study_file import parse_study

    if layer:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise UserError(f"{name!r} cannot name a layer; give letters, digits and _: my_layer")
        path = Path(f"{name}.py")
        title = "".join(map(str.capitalize, name.split("_")))
        text = files("rgr_dist.models").joinpath("first_layer.py").read_text("utf-8")
        text = text.replace("FirstLayer", title).replace("NAME", name)
        then = f"in a study it is model: {path}"
    else:
        parse_study({"name": name, "cells": [{"m": 64, "d_model": 16}]})  # refuses an invalid name
        path = Path(f"{name}.yaml")
        text = files("rgr_dist.cli").joinpath("first_study.yaml").read_text("utf-8")
        text = text.replace("{name}", name)
        then = f"rgr plan {path} says what it would train"
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    say(f"wrote {path}; {then}")


def plan(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """What a study would train: what is done, failed and left, steps, time. Starts nothing."""
    from rgr_dist.planning.listing import plan_study

    with opened(study, set_, out, may_be_new=True) as (resolved, store):
        cells, facts = plan_study(resolved, store)
    if how is Format.TABLE:
        read = {"read": "; ".join(resolved.read)} if resolved.read else {}
        facts = read | _in_words(facts, as_typed(study, out, set_))
    print_listing({"cells": cells}, how, facts=facts)


def _in_words(facts: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """The totals of a plan in words; ``asked`` is the study with its options, as typed."""
    import humanize

    from rgr_dist.analysis.wording import plural, rough_time

    done = plural(facts["runs_done"], "run")
    if failed := facts["runs_failed"]:
        done += f"; {failed:,} failed, and rgr run {asked} tries them again"
    if not facts["runs_left"]:
        return {"done": done, "left": "nothing"}
    time = rough_time(facts["core_seconds_left"] / facts["cores_here"])
    by = "stored runs" if facts["is_measured"] else "a rough guess, as no run of it is stored yet"
    return {
        "done": done,
        "left": f"about {plural(facts['runs_left'], 'run')}, "
        f"{humanize.intword(facts['steps_left'])} steps, if thresholds lie where the law expects "
        "them; several times more if they lie elsewhere",
        "time": f"about {time} of training on the {plural(facts['cores_here'], 'core')} here, by "
        f"{by}; starting and the report add 15 to 30 seconds",
    }
