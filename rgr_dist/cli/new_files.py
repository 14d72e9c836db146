"""The verbs that write a file to start from: a study, or a layer."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from rgr_dist.cli.listing import say
from rgr_dist.faults import UserError


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
        _write_new(path, text.replace("FirstLayer", title).replace("NAME", name))
        say(f"wrote {path}; in a study it is model: {path}")
        return
    parse_study({"name": name, "cells": [{"m": 64, "d_model": 16}]})  # refuses an invalid name
    path = Path(f"{name}.yaml")
    text = files("rgr_dist.cli").joinpath("first_study.yaml").read_text("utf-8")
    _write_new(path, text.replace("{name}", name))
    say(f"wrote {path}; rgr plan {path} says what it would train")


def _write_new(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        UserError: it exists already, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} is there already; give another name") from None
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # it may hold a part
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
