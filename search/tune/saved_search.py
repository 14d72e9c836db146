"""What a threshold search knows, as JSON: a Tuner that was killed goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from rgr_dist.search.protocol import Probe, ProbeKey
from rgr_dist.search.tune.one_line import escaped, one_line
from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import Score, ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import TrialError

Count = Annotated[StrictInt, Field(ge=0)]
LONGEST = 100
"""Characters of an answer that are quoted."""
Training = tuple[Count, Count, Count]
"""The number of a setting, a value and a seed."""


class Saved(BaseModel):
    """The state of a search and of the searcher that asks it.

    Attributes:
        asked: the question in words.
        scores, errors, cut, longest, trained: as in ``SettingSearch``.
        failed: the trainings that could not be run.
        probes: the probe of each trial that had not ended.
        last: the last metric of each such trial; text where it is no number.
        seen: the iterations of each such trial.
    """

    model_config = ConfigDict(strict=True, extra="forbid", ser_json_inf_nan="constants")

    asked: dict[str, str]
    metric: str
    mode: str
    scores: list[tuple[Count, Count, StrictFloat, dict[str, Any]]]
    errors: list[tuple[Count, Count, Count, str]]
    failed: list[Training]
    cut: list[tuple[Training, Count]]
    longest: Count
    trained: list[Training]
    probes: dict[str, Probe]
    last: dict[str, StrictInt | StrictFloat | StrictStr]
    seen: dict[str, Count]

    @classmethod
    def of(
        cls,
        search: SettingSearch,
        probes: Mapping[str, Probe],
        last: Mapping[str, Any],
        seen: Mapping[str, int],
    ) -> Self:
        """What is to be saved."""
        return cls(
            asked=search.asked,
            metric=search.question.metric,
            mode=search.question.mode,
            scores=[(at.value, at.seed, at.score, at.setting) for at in search.kept.scores],
            errors=[
                (number, error.value, error.seed, error.error)
                for number, errors in search.errors.items()
                for error in errors
            ],
            failed=[
                (number, key.value, seed)
                for number, (cell, arm) in enumerate(search.places)
                for key, seeds in search.portfolio.state(cell).failed.items()
                for seed in seeds
                if key.arm == arm
            ],
            cut=list(search.cut.items()),
            longest=search.longest,
            trained=sorted(search.trained),
            probes=dict(probes),
            last={trial: plain(value) for trial, value in last.items()},
            seen=dict(seen),
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what was saved.

        Raises:
            ValueError: the file is damaged.
            OSError: it cannot be read.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            where += ": " if where else ""
            raise ValueError(
                f"{escaped(str(path))} is not the state of a threshold search of this version: "
                f"{one_line(where + fault['msg'])}"
            ) from None

    def search(self, question: Question) -> SettingSearch:
        """The search that was saved.

        Raises:
            ValueError: that search was asked something else, or a training is not one of its own.
        """
        kept = ScoreFile(None, {})
        for key, mine in SettingSearch(question, kept).asked.items():
            if (its := self.asked.get(key)) != mine:
                shown = [one_line(str(one))[:LONGEST] for one in (its, mine)]
                raise ValueError(
                    f"the saved search is of another question: {key}: {shown[0]}, not {shown[1]}"
                )
        kept.scores += [Score(*one) for one in self.scores]
        try:
            ScoreFile.check_agree(kept.scores)
        except ValueError as fault:
            raise ValueError(f"the saved search is damaged: {fault}") from None
        search = SettingSearch(question, kept)
        trainings = [*self.failed, *self.trained, *(at for at, _ in self.cut)]
        trainings += [(number, value, seed) for number, value, seed, _ in self.errors]
        probes = self.probes.values()
        used = {value for _, value, _ in trainings}
        used.update(value for value, *_ in self.scores)
        used.update(probe.value for probe in probes)
        if (
            not all(value in question.values for value in used)
            or not all(number < len(search.places) for number, _, _ in trainings)
            or not all((probe.cell, probe.arm) in search.places for probe in probes)
            or not all(len(probe.seeds) == 1 for probe in probes)
        ):
            raise ValueError("the saved search has trainings of other settings or values")
        for number, value, seed, error in self.errors:
            search.errors[number].append(TrialError(value, seed, error))
        for number, value, seed in self.failed:
            cell, arm = search.places[number]
            search.portfolio.tell_failed(cell, ProbeKey(arm, value), [seed])
        search.cut, search.longest, search.trained = dict(self.cut), self.longest, {*self.trained}
        return search


def plain(value: Any) -> float | str:
    """A metric as a number; if it is none, as text that cannot be taken for one."""
    if not isinstance(value, str | bytes | bytearray):  # which float takes too
        with suppress(TypeError, ValueError, OverflowError, RuntimeError):
            return float(value)
    return f"<{value!a}>"
