"""Accuracy against width in a transformer's study: what splitting D_K among heads gains."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.rows import Row, name_keys, names_of, rows_of
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.splits import findings as accuracy
from rgr_dist.analysis.splits.accuracy import guess, splits_of
from rgr_dist.analysis.splits.figure import draw_accuracy
from rgr_dist.analysis.wording import plural, real_range


def section(results: StudyResults) -> Section:
    """Accuracy and share of NULL answers at every split."""
    study, names = results.study, names_of(results)
    splits = [_named(results, row) for row in rows_of(splits_of(results))]
    runs = [{**row, **name_keys(results, row)} for row in rows_of(scored(results.searched, study))]
    guesses = {names[cell.cell_id]["anchor"]: guess(cell) for cell in study.cells}
    words = [f"The items’ vectors: {accuracy.vectors(study)}."]
    chance = ", ".join(dict.fromkeys(f"{guess(cell):.3f}" for cell in study.cells))
    words.append(
        "Accuracy is the share of test queries that the block answers correctly, with the weights "
        f"that did best in validation. A guess among the items of a context scores {chance}. "
        "The task and the block are those of the paper, Sec. 7.3."
    )
    return Section(
        name="accuracy",
        title="Accuracy against width",
        words=words,
        figures=(draw_accuracy([*names.values()], splits, runs, guesses),),
        shown=(_table(splits),),
        files={"splits": splits_of(results)},
    )


def _named(results: StudyResults, row: Row) -> Row:
    row |= name_keys(results, row)
    row["accuracy_words"] = real_range(row["accuracy"], row["low"], row["high"])
    row["gain_words"] = real_range(row["gain"], row["gain_low"], row["gain_high"], signed=True)
    row["text"] = (
        f"{row['full']}, h = {row['h']}, D_K = {row['D_K']}\naccuracy {row['accuracy_words']}, "
        f"{plural(row['n_seeds'], 'seed')}, {row['collapsed']} collapsed"
    )
    return row


def _table(rows: list[Row]) -> Table:
    return Table(
        name="table-splits",
        caption=(
            "Means over seeds, 95 % t-intervals in brackets. The gain is over one head at the "
            "same D_K, paired by seed; shaded where its interval holds 0. A collapsed run is "
            "below a guess among the items of the context."
        ),
        columns=[
            cell_column(),
            Column("D_K", "D_K"),
            Column("h", "h"),
            Column("d_k", "d_k"),
            Column("seeds", "n_seeds"),
            Column("accuracy", "accuracy_words", "accuracy"),
            Column("gain over one head", "gain_words", "gain"),
            Column("collapsed", "collapsed"),
            Column("NULL share", "null_rate", form=".3f"),
        ],
        rows=rows,
        apart=lambda row: row["gain_low"] is not None and row["gain_low"] <= 0 <= row["gain_high"],
    )
