"""A trial of a tuning: one protocol; each ``step`` trains one seed of every probe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray import tune

from rgr_dist.engines.choose import make_engine
from rgr_dist.running.worker import train_rows
from rgr_dist.search.confidence_interval import mean
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.tuning.training_protocol import TunedProbe, is_hopeless


class ProtocolTrainable(tune.Trainable):
    """Trains a protocol's runs, one seed of every probe at a time, to the end or until hopeless."""

    def setup(self, config: dict[str, Any], arrays: dict[str, assets.Array] | None = None) -> None:
        """Take a protocol.

        Args:
            arrays: the arrays that the study's cells load from files.
        """
        assets.take(arrays or {})
        self.probes = [
            TunedProbe(Cell.model_validate_json(cell), h, d_k) for cell, h, d_k in config["probes"]
        ]
        self.protocol = config["protocol"]
        self.seeds, self.best, self.known = config["seeds"], config["best"], config["known"]
        self.perfect, self.worst = config["perfect"], config["worst"]
        models = {probe.cell.model for probe in self.probes}
        self.engines = {model: make_engine(config["engine"], model=model) for model in models}
        self.scores: list[float] = []
        self.seed = 0

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another protocol in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train the next seed at every probe."""
        rows = []
        for probe in self.probes:
            run = probe.run(self.protocol, self.seed)
            if run.run_id in self.known:
                self.scores.append(self.known[run.run_id])
                continue
            rows += train_rows(self.engines[run.cell.model], [run])
            if rows[-1]["stop_reason"] == "failed":
                return {"score": None, "rows": rows, "failed": True, "done": True}
            self.scores.append(score_of(rows[-1], self.worst))
        self.seed += 1
        is_last, runs = self.seed == self.seeds, len(self.probes) * self.seeds
        pruned = not is_last and is_hopeless(self.scores, runs, self.perfect, self.best)
        return {
            "score": mean(self.scores),
            "rows": rows,
            "pruned": pruned,
            "done": is_last or pruned,
        }


def score_of(row: Mapping[Any, Any], worst: float) -> float:
    """The score of a run that has ended, or the worst possible score if it diverged."""
    return worst if row["stop_reason"] == "diverged" else float(row["score"])
