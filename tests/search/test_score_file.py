"""What a file of scores is of: the trainable and the config, by content, in any process."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from ray import cloudpickle

from rgr_dist.search.tune.find_threshold import find_threshold
from rgr_dist.search.tune.score_file import ScoreFile
from tests.search.driven import ABOUT, in_a_process, train

SCRIPT = """
import json, sys
from functools import partial
from rgr_dist.search.tune.score_file import ScoreFile

class Schedule:
    def __init__(self, warmup):
        self.warmup = warmup

def train(config):
    return config["width"] * {factor}

class Loss:
    def step(self):
        return {factor}

about = {{
    "trainable": {trainable},
    "config": {{"schedule": Schedule({warmup}), "layers": [1, 2], "names": {{*"abc"}}}},
}}
kept = ScoreFile(sys.argv[1], about)
kept.add(3, 0, 0.5)
print(len(kept.scores))
"""

PLAIN = {"factor": 1, "trainable": "train", "warmup": 9}


def scores_after(folder: Path, **changes: Any) -> int | str:
    """How many scores the file holds after a script has added one, or what it was refused with."""
    script = folder / "script.py"
    script.write_text(SCRIPT.format(**{**PLAIN, **changes}))
    done = in_a_process(script, "scores.log")
    return int(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]


def test_empty_lines_of_an_editor_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scores.log"
    path.write_text("\n\n")
    for known in range(4):
        kept = ScoreFile(path, ABOUT)
        assert [score[:3] for score in kept.scores] == [(at + 1, 0, 0.5) for at in range(known)]
        kept.add(known + 1, 0, 0.5)
        with path.open("a") as file:
            file.write("\n" * known)


@pytest.mark.parametrize("trainable", ["train", "Loss", "partial(train, factor=2)"])
def test_the_same_trainable_and_objects_go_on_in_another_process(
    trainable: str, tmp_path: Path
) -> None:
    assert [scores_after(tmp_path, trainable=trainable) for _ in range(3)] == [1, 2, 3]


def test_tensors_and_modules_are_named_by_what_they_hold(tmp_path: Path) -> None:
    def named(steps: torch.Tensor, width: int = 3) -> str:
        data = steps, torch.nn.Embedding.from_pretrained(torch.ones(2, width))
        return json.dumps(ScoreFile(tmp_path / "scores.log", {"data": data}).about)

    few, more = torch.arange(3.0), torch.arange(4.0)
    assert named(few) == named(more[:3])
    assert len({named(few), named(more), named(few.flip(0)), named(few, width=4)}) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"factor": 2},
        {"trainable": "Loss"},
        {"trainable": "partial(train, factor=2)"},
        {"warmup": 10},
    ],
)
def test_another_trainable_or_object_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    assert scores_after(tmp_path) == 1
    written = (tmp_path / "scores.log").read_text()
    refused = str(scores_after(tmp_path, **change))
    assert refused.startswith("ValueError: scores.log holds scores of {")
    assert refused.endswith("; give another file")
    assert (tmp_path / "scores.log").read_text() == written
    assert scores_after(tmp_path) == 2


def test_what_no_file_can_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^config: <.*> cannot be kept in a file: "):
        ScoreFile(tmp_path / "scores.log", {"config": {"rows": (row for row in [])}})
    assert not (tmp_path / "scores.log").exists()


def test_the_first_line_says_what_the_scores_are_of(tmp_path: Path) -> None:
    path = tmp_path / "scores.log"
    about = {"axis": "width", "trainable": partial(scores_after, factor=2)}
    ScoreFile(path, about).add(3, 1, 0.25)
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["trainable"]["arguments"] == [[], {"factor": 2}]
    assert first["trainable"]["partial"].startswith("scores_after ")
    assert second == {"value": 3, "seed": 1, "score": 0.25}


@pytest.mark.parametrize("content", [b"a draft without a line break", b"\n", b'{"axis": "width"}x'])
def test_a_file_without_a_whole_line_is_written_over_only_if_it_is_its_own(
    content: bytes, tmp_path: Path
) -> None:
    path, about = tmp_path / "scores.log", {"axis": "width"}
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"scores\.log is no file of scores \(it does not begin"):
        ScoreFile(path, about)
    assert path.read_bytes() == content
    path.write_bytes(b'{"axis": "wi')  # a crash cut the first line short
    ScoreFile(path, about).add(3, 1, 0.25)
    path.write_bytes(path.read_bytes() + b'{"value": 4, "se')  # or the last one
    ScoreFile(path, about).add(4, 1, 0.5)
    assert ScoreFile(path, about).scores == [(3, 1, 0.25, {}), (4, 1, 0.5, {})]


@pytest.mark.parametrize(
    "change",
    [
        {"score": "x"},
        {"score": None},
        {"score": True},
        {"score": 10**400},
        {"seed": -1},
        {"value": 0},
        {"setting": 5},
        {"seed": [1]},
        {"value": 3.0},
        {"another \x1b key\n": 0},
    ],
)
def test_a_line_that_holds_no_score_is_refused_in_one_line(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "scores.log"
    lines = [{}, {"value": 3, "seed": 1, "score": 0.25} | change]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match=r"^[^\n]*scores\.log is no file of scores \(no score: {"):
        ScoreFile(path, {})


def test_a_path_with_control_characters_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "d\x1b\nx").mkdir()
    with pytest.raises(ValueError, match=r"d\\x1b\\nx is no file of scores \(a folder, "):
        ScoreFile(tmp_path / "d\x1b\nx", {})


def test_a_line_in_which_damage_gives_a_setting_twice_is_refused(tmp_path: Path) -> None:
    path, setting = tmp_path / "scores.log", {"depth": 1, "heads": 2}
    ScoreFile(path, {}).add(3, 1, 0.25, setting)
    path.write_bytes(path.read_bytes().replace(b"heads", b"depth"))
    with pytest.raises(ValueError, match=r'no file of scores \(a key twice: \["depth", "depth"\]'):
        ScoreFile(path, {})


def test_two_scores_of_one_trial_are_refused_unless_they_are_alike(tmp_path: Path) -> None:
    path = tmp_path / "scores.log"
    for score in (0.25, 0.25):
        ScoreFile(path, {}).add(3, 1, score)
    assert ScoreFile(path, {}).scores == [(3, 1, 0.25, {})] * 2
    endless = tmp_path / "endless.log"
    for score in (float("inf"), float("-inf")):
        ScoreFile(endless, {}).add(3, 1, score)
    with pytest.raises(ValueError, match="two scores of 3, seed 1: inf and -inf"):
        ScoreFile(endless, {})
    ScoreFile(path, {}).add(3, 1, 0.5, {"depth": 2})
    ScoreFile(path, {}).add(3, 1, 0.75)
    with pytest.raises(ValueError, match=r"no file of scores \(two scores of 3, seed 1: 0.25 and"):
        ScoreFile(path, {})


def test_a_second_search_on_a_file_is_refused_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "scores.log"
    kept, late = ScoreFile(path, ABOUT), ScoreFile(path, ABOUT)
    search = {"axis": "width", "values": [1, 2], "metric": "accuracy", "target": 0.9, "seeds": 1}
    for seed in range(2):  # before its first score, and with one
        with kept.held():
            with pytest.raises(ValueError, match=f"^{path}: another search writes it; wait for it"):
                find_threshold(train, **search, store=path)
            kept.add(1, seed, 0.5)
    assert ScoreFile(path, ABOUT).scores == [(1, 0, 0.5, {}), (1, 1, 0.5, {})]
    with pytest.raises(ValueError, match=r"another search has written it; run this one again"):
        late.add(1, 1, 0.5)


def test_a_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    for path in (tmp_path / "loop", tmp_path / "file/scores"):
        told = f"store: {path} cannot be made: "
        with pytest.raises(ValueError, match=told), ScoreFile(path, {}).held():
            pass


def test_a_file_that_is_held_goes_along_with_a_searcher_that_is_saved(tmp_path: Path) -> None:
    kept = ScoreFile(tmp_path / "scores.log", {})
    with kept.held():
        kept.add(1, 0, 0.5)
        assert cloudpickle.loads(cloudpickle.dumps(kept)).scores == kept.scores
