"""Two studies, and which of their cells are compared."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.study.cell import Cell

Pair = tuple[StudyResults, StudyResults]


Names = tuple[str, str]


def by_accuracy(pair: Pair) -> bool:
    """Whether the two measure accuracy, not thresholds."""
    return pair[0].study.record.finds == "accuracy"


def partners_of(pair: Pair) -> dict[str, str]:
    """The cell of the second study that each cell of the first is compared with, by cell_id.

    If each study has one cell of a size, the two are compared whatever else differs. If either has
    several, the two must agree in the keys that tell those apart, such as the step limit.
    """
    groups: tuple[dict[str, list[Cell]], ...] = {}, {}
    for results, group in zip(pair, groups, strict=True):
        for cell in results.study.cells:
            group.setdefault(cell.name, []).append(cell)
    partners = {}
    for name in groups[0].keys() & groups[1].keys():
        keys = [
            {cell.cell_id: results.study.keys_of(cell) for cell in group[name]}
            for results, group in zip(pair, groups, strict=True)
        ]
        telling = {
            key
            for side in keys
            for key in {key for own in side.values() for key in own}
            if len({str(own.get(key)) for own in side.values()}) > 1
        }
        for cell_id, own in keys[0].items():
            alike = [
                other_id
                for other_id, other in keys[1].items()
                if all(own.get(key) == other.get(key) for key in telling)
            ]
            if len(alike) == 1:
                partners[cell_id] = alike[0]
    return partners


def alone(pair: Pair) -> tuple[list[str], list[str]]:
    """The names of the cells of each study that the other lacks."""
    partners = partners_of(pair)
    both = set(partners), set(partners.values())
    first, second = (
        [row["short"] for row in cells_of(results) if row["cell_id"] not in paired]
        for results, paired in zip(pair, both, strict=True)
    )
    return first, second
