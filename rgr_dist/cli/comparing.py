"""The verb that compares two studies, and what every comparison reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rgr_dist.cli.listing import Format, Row, print_listing, say
from rgr_dist.cli.options import How, Set, Stores, StudyName, no_runs, opened, say_error
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.store.store import Store


def compare(
    one: StudyName,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[OTHER]", help="The second study; left out to compare one in two stores."
        ),
    ] = None,
    out: Stores = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Compare what two studies found, cell by cell; also write a page with both side by side."""
    from rgr_dist.analysis.report.comparison.section import answer
    from rgr_dist.analysis.report.publish import publish_comparison
    from rgr_dist.store.storage import StoreError

    stores = out or ["results"]
    if len(stores) > 2:
        raise UserError("rgr compare takes --store at most twice")
    if other is None and len(stores) == 1:
        raise UserError("rgr compare takes two studies, or one and --store twice")
    page = None
    both = [one, other or one]
    with side_by_side(both, stores, set_, is_page=True, with_common=True) as (pair, names, store):
        found, rows = answer(pair, names)
        try:
            page = publish_comparison(*pair, names, store)
        except StoreError as error:  # the store may be read-only
            say_error(f"no page: {error}")
    if how is not Format.TABLE:
        print_listing({"cells": rows}, how, facts={"found": " ".join(found), "page": page})
        return
    print_listing({"cells": [_named_sides(row, names) for row in rows]}, how)
    for sentence in [*found, page]:
        if sentence is not None:
            say(sentence)


def _named_sides(row: Row, names: tuple[str, str]) -> Row:
    """A row of a comparison as a person reads it: ``D_K small``, and a ratio with its limits."""
    from rgr_dist.analysis.wording import with_limits

    shown = {
        f"{key[:-2]} {names['ab'.index(key[-1])]}" if key[-2:] in ("_a", "_b") else key: value
        for key, value in row.items()
        if key not in ("m", "d_model", "ratio_low", "ratio_high")
    }
    if row.get("ratio") is not None:
        ends = row["ratio_low"], row["ratio_high"]
        shown["ratio"] = with_limits(row["ratio"], *ends, "{:.2f}".format)
    return shown


@contextmanager
def side_by_side(
    studies: Sequence[str],
    stores: Sequence[str],
    set_: list[str] | None,
    is_page: bool = False,
    with_common: bool = False,
) -> Iterator[tuple[tuple[StudyResults, StudyResults], tuple[str, str], Store]]:
    """The results of two studies, their names, and the store of the first.

    On exit, says which of them has no run in its store.

    Args:
        is_page: a page of both is to be stored: refuse a changed study, whose page it is not.
        with_common: refuse two studies that have no cell in common.

    Raises:
        UserError: there is no such store, or the two studies cannot be compared.
    """
    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.report.comparison.pairs import partners_of
    from rgr_dist.planning.same_question import check_same_question

    one, other = studies[0], studies[-1]
    with (
        opened(one, set_, stores[0]) as (first, store),
        opened(other, set_, stores[-1]) as (second, its_own),
    ):
        records = first.record, second.record
        kinds = {record.finds_thresholds for record in records}
        if len(kinds) > 1 or any(record.holds == "facts" for record in records):
            raise UserError(
                f"{one} and {other} cannot be compared: give two studies of thresholds D_K, or two "
                "of accuracy"
            )
        one_place, other_place = (
            os.path.realpath(each.local_path or each.root) for each in (store, its_own)
        )
        is_same = one_place == other_place
        if first == second and is_same:
            raise UserError(f"both are {one} in {stores[0]}; give two, or one in two stores")
        if is_page and set_:
            check_same_question(first, store, one, is_changed=True)
            check_same_question(second, its_own, other, is_changed=True)
        its_own = store if is_same else its_own  # it is read, and its damage reported, once
        pair = open_results(first, store), open_results(second, its_own)
        if with_common and not partners_of(pair):
            raise UserError(
                f"{one} and {other} have no cell in common, so there is nothing to compare; rgr "
                "report of both sets the rest side by side"
            )
    names = (first.name, second.name)
    if names[0] == names[1] and is_same:
        names = (one, other)
    elif names[0] == names[1]:
        names = (f"{names[0]} in {stores[0]}", f"{names[1]} in {stores[-1]}")
    yield pair, names, store
    for study, out, results in zip((one, other), (stores[0], stores[-1]), pair, strict=True):
        if results.runs.empty:
            say_error(*no_runs(study, out, set_))
