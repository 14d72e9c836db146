"""The verb that compares two studies, two stores of one, or the parts of one study."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgr_dist.cli.listing import Format, plain, print_listing, say
from rgr_dist.cli.options import How, Set, Stores, StudyName
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    from rgr_dist.analysis.compare import Side


def compare(
    one: StudyName,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="The second study.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="KEY", help="Compare the cells of one study by a key.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw both sides there, as PDF.")
    ] = None,
    out: Stores = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """What a second study needs more or less than the first, cell by cell.

    With --store twice, one study in two stores; with --by model, the layers of one study.
    """
    from rgr_dist.analysis.compare import compare as compared
    from rgr_dist.analysis.compare import sentence
    from rgr_dist.analysis.wording import with_limits, with_range

    table = compared(_sides(one, other, by, out or ["results"], set_))
    if figures is not None:
        from rgr_dist.analysis.figures.beside import beside
        from rgr_dist.analysis.figures.style import Figure
        from rgr_dist.cli.results import write_files

        stem = f"{Path(one).stem}-{Path(other or by or one).stem}"
        write_files([Figure("beside", sentence(table), partial(beside, table))], stem, figures)
    found = sentence(table)
    if how is not Format.TABLE:
        print_listing({"cells": table}, how, facts={"found": found})
        return
    shown = []
    for row in plain(table):
        line = {"cell": row["cell"]}
        for side, name in (("a", row["first"]), ("b", row["second"])):
            if "accuracy_a" in row:
                line |= {"D_K": row["D_K"], "h": row["h"]}
                line[name] = f"{row[f'accuracy_{side}']:.3f}"
            else:
                ends = (row[f"D_K{end}_{side}"] for end in ("", "_low", "_high"))
                line |= {f"D_K* {name}": with_range(*ends), f"h* {name}": row[f"h_star_{side}"]}
        if "accuracy_a" in row:
            line["difference"] = f"{row['difference']:+.3f}"
        elif row["ratio"] is not None:
            limits = row["ratio_low"], row["ratio_high"]
            line["ratio"] = with_limits(row["ratio"], *limits, "{:.2f}".format)
        shown.append(line)
    print_listing({"cells": shown}, how)
    say(found)


def _sides(
    one: str, other: str | None, by: str | None, stores: list[str], set_: list[str] | None
) -> list[Side]:
    """What is compared with what."""
    from rgr_dist.analysis.compare import Side, sides_by
    from rgr_dist.cli.results import stored_results

    if len(stores) > 2:
        raise UserError("rgr compare takes --store at most twice")
    if by is None and other is None and len(stores) == 1:
        raise UserError("rgr compare takes two studies, or one with --by or with --store twice")
    if by is not None:
        with stored_results(one, set_, stores[0]) as (results, _):
            return sides_by(results, by)
    with ExitStack() as stack:
        pairs = ((one, stores[0]), (other or one, stores[-1]))
        found = [stack.enter_context(stored_results(name, set_, out))[0] for name, out in pairs]
    names = [results.study.name for results in found]
    if names[0] == names[1]:
        names = [f"{name} in {out}" for name, out in pairs]
    return [
        Side(name, results, results.study.cells) for name, results in zip(names, found, strict=True)
    ]
