"""The stored tables: columns, units, version.

``RUNS`` is the raw record, one row per trained run. ``THRESHOLDS`` and ``DECISIONS``
belong to one study and can be rebuilt from the runs, the study file and where its searches started.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from sys import float_info
from typing import get_args

import pyarrow as pa

from rgr_dist.search.probe_verdict import Verdict
from rgr_dist.search.protocol import Status
from rgr_dist.study.spec import LARGEST_COUNT

SCHEMA_VERSION = 6
"""Raise it when columns change, or what they may hold: no older rgr-dist then rewrites such parts.

2 added ``null_rate`` to runs; it is null in parts of version 1. 3 added ``trained_to`` to runs,
which is null before; ``max_steps``, ``confirmed``, ``fresh_mean``, ``fresh_seeds`` and
``D_K_first`` to thresholds; and ``max_steps``, ``want`` and ``first_seed`` to decisions, in place
of ``longer``. 4 added the columns of facts, which are null for every other model: ``d_vo``,
``D_V``, the accuracies and the ranks to runs; the widths to thresholds and decisions. 5 added
``parameters`` and ``cached`` to runs, which are null except for layers from a file or the zoo. 6
added the stop_reason ``given_up``.
"""


@dataclass(frozen=True)
class Kind:
    """What a column may hold: its type, and the range of its numbers or the choice of its words."""

    type: pa.DataType
    least: float = 0.0
    most: float = LARGEST_COUNT
    words: tuple[str, ...] = ()


TEXT, YES_NO = Kind(pa.string()), Kind(pa.bool_())
INT, LONG = Kind(pa.int32()), Kind(pa.int64())
SIZE, STEPS, ITEMS = Kind(pa.int32(), 1), Kind(pa.int64(), 1), Kind(pa.int32(), 2)
REAL, SHARE = Kind(pa.float64(), -float_info.max, float_info.max), Kind(pa.float64(), 0, 1)
SCORE, SECONDS = Kind(pa.float64(), 0, float_info.max), Kind(pa.float64(), 0, 1e9)
MEAN = Kind(pa.float64(), 0, inf)
"""A mean over seeds; that of errors is infinite if a run diverged."""
PAIRS = Kind(pa.int64(), 0, LARGEST_COUNT**2)
TIME = Kind(pa.timestamp("us", tz="UTC"), 0, 253_402_300_799e6)
"""A time up to the end of the year 9999."""
STATUS = Kind(pa.string(), words=get_args(Status))
VERDICT = Kind(pa.string(), words=(*get_args(Verdict), "open"))
KINDS: dict[str, dict[str, Kind]] = {}
"""The kind of each column of each table; scores that are shares are at most 1."""


def _table(name: str, *columns: tuple[str, Kind, str]) -> pa.Schema:
    KINDS[name] = {column: kind for column, kind, _ in columns}
    fields = [
        pa.field(column, kind.type, metadata={"about": about}) for column, kind, about in columns
    ]
    return pa.schema(fields, metadata={"table": name, "version": str(SCHEMA_VERSION)})


RUNS = _table(
    "runs",
    ("run_id", TEXT, "address of the run: a hash of config"),
    ("cell_id", TEXT, "hash of the part of config that describes the cell"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family; for facts, database family"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("embedding", TEXT, "embedding family"),
    ("m", ITEMS, "number of items; for facts, of triples"),
    ("d_model", SIZE, "embedding width"),
    ("h", SIZE, "number of heads"),
    ("d_k", SIZE, "key width of a head; for facts, d_qk"),
    ("D_K", SIZE, "total key width, h * d_k"),
    ("d_vo", SIZE, "for facts: value width of a head"),
    ("D_V", SIZE, "for facts: total value width, h * d_vo"),
    ("seed", INT, "seed; it pairs the runs of a cell across h and d_k"),
    ("context_length", SIZE, "items per context, l; for the transformer, pairs of items"),
    ("positive_rate", SHARE, "target-in-context rate, rho; the transformer does not use it"),
    ("max_steps", STEPS, "step limit, in contexts or batches"),
    ("trained_to", STEPS, "step limit of the training it was read from; max_steps if its own"),
    ("score", SCORE, "test micro-F1; accuracy for transformer and facts, error (MSE) for value"),
    ("val_score", SCORE, "the same on validation data at the last check; transformer: the best"),
    ("threshold_tau", REAL, "learned decision threshold tau; null if there is none"),
    ("null_rate", SHARE, "share of the transformer's test queries answered with NULL"),
    ("argmax_accuracy", SHARE, "for facts: share of triples whose value has the largest logit"),
    ("softmax_accuracy", SHARE, "for facts: share whose value has a probability of at least tau"),
    ("rank_logits", INT, "for facts: largest rank of an unfolding of the logits L"),
    ("rank_argmax", INT, "for facts: the same for the 0/1 tensor argmax(L)"),
    ("parameters", LONG, "for a layer from a file or the zoo: trained parameters, without tau"),
    ("cached", LONG, "for such a layer: numbers cached per token; null if it does not say"),
    ("by_tau", TEXT, "for facts, JSON: for each tau, [tau, accuracy, rank of softmax>=tau(L)]"),
    ("steps", LONG, "training steps done: contexts, or batches for the transformer"),
    ("stop_reason", TEXT, "converged | max_steps | given_up | diverged | failed"),
    ("error", TEXT, "why the run failed; null unless stop_reason is failed"),
    ("engine", TEXT, "engine that trained the run"),
    ("device", TEXT, "cpu or cuda, and the name of the processor"),
    ("seconds", SECONDS, "its share of the program's wall time, s; 0 if read from another run"),
    ("finished_at", TIME, "when the run ended"),
    ("versions", TEXT, "versions of rgr-dist, torch, numpy and numba"),
    ("git_revision", TEXT, "source revision, if known"),
    ("config", TEXT, "canonical JSON of everything that the numbers depend on"),
)

OF_FACTS = (
    "d_vo", "D_V", "argmax_accuracy", "softmax_accuracy", "rank_logits", "rank_argmax", "by_tau",
)  # fmt: skip
"""Columns of ``RUNS`` that are null for every model but ``facts``."""
OF_LAYERS = ("parameters", "cached")
"""Columns of ``RUNS`` that are null except for layers from a file or the zoo."""
RESULTS = (
    "score", "val_score", "threshold_tau", "null_rate", "argmax_accuracy", "softmax_accuracy",
    "rank_logits", "rank_argmax", "by_tau", *OF_LAYERS, "steps", "stop_reason",
)  # fmt: skip
"""Columns of ``RUNS`` that training a run yields: the same no matter where and when it trains."""
SINCE_VERSION = {
    "null_rate": 2,
    "trained_to": 3,
    **dict.fromkeys(OF_FACTS, 4),
    **dict.fromkeys(OF_LAYERS, 5),
}
"""The schema version that added each of these columns to ``RUNS``; version 1 has the others."""


def columns_of_version(version: int) -> list[pa.Field]:
    """The columns of a part that was written with a schema version."""
    return [field for field in RUNS if SINCE_VERSION.get(field.name, 1) <= version]


THRESHOLDS = _table(
    "thresholds",
    ("cell_id", TEXT, "hash of the part of a run's config that describes the cell"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("m", ITEMS, "number of items"),
    ("d_model", SIZE, "embedding width"),
    ("h", SIZE, "number of heads"),
    ("d_k", SIZE, "smallest key width that passes; null unless found"),
    ("D_K", SIZE, "h * d_k; null unless found"),
    ("D_K_low", INT, "optimistic D_K (App. A.2), or the smallest D_K not ruled out"),
    ("D_K_high", INT, "conservative D_K (App. A.2), or the smallest D_K known to pass"),
    ("status", STATUS, "found | censored | pruned | inconsistent | open"),
    ("mean_score", REAL, "mean test score at d_k"),
    ("n_seeds", INT, "number of seeds in mean_score"),
    ("certificate", TEXT, "JSON: the probe that passes and the next one below, which fails"),
    ("because", TEXT, "the reason for the status, in words"),
    (
        "limited_by",
        TEXT,
        "by the study alone: budget if D_K falls with more steps, otherwise unknown",
    ),
    ("n_edges", SIZE, "number of relations m'; null in older tables, where it is degree * m"),
    ("max_steps", STEPS, "step limit of the threshold's runs"),
    ("confirmed", YES_NO, "whether it passes on fresh seeds; null if that was not asked"),
    ("fresh_mean", REAL, "mean test score on the fresh seeds"),
    ("fresh_seeds", INT, "number of fresh seeds in fresh_mean"),
    ("D_K_first", INT, "smallest D_K that passes on the first seeds alone"),
    ("d_vo", SIZE, "for facts: smallest value width that passes; null unless found"),
    ("D_V", SIZE, "for facts: h * d_vo; null unless found"),
    ("D_V_low", INT, "for facts: like D_K_low"),
    ("D_V_high", INT, "for facts: like D_K_high"),
    ("D_V_first", INT, "for facts: like D_K_first"),
)

DECISIONS = _table(
    "decisions",
    ("cell_id", TEXT, "hash of the part of a run's config that describes the cell"),
    ("m", INT, "number of items"),
    ("d_model", INT, "embedding width"),
    ("step", INT, "position among the cell's probes, in order"),
    ("h", INT, "number of heads"),
    ("d_k", INT, "key width probed"),
    ("D_K", INT, "h * d_k"),
    ("max_steps", LONG, "step limit"),
    ("want", TEXT, "look | verdict | every seed | extra seeds | fresh seeds | transition"),
    ("first_seed", INT, "smallest of the seeds behind the verdict"),
    ("reason", TEXT, "why this probe came next"),
    ("verdict", VERDICT, "pass | fail | open"),
    ("mean_score", MEAN, "mean test score over the seeds that ran"),
    ("n_seeds", INT, "number of seeds that ran"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("evidence", TEXT, "what decided the verdict, such as the curtailment of seeds"),
    ("d_vo", INT, "for facts: value width probed"),
    ("D_V", INT, "for facts: h * d_vo"),
)

KEYS = {
    "runs": (
        "run_id", "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "h", "d_k",
        "D_K", "seed", "max_steps", "steps", "stop_reason", "seconds", "finished_at", "config",
    ),
    "thresholds": ("cell_id", "model", "graph", "degree", "m", "d_model", "h", "status"),
    "decisions": ("cell_id", "m", "d_model", "step", "h", "verdict", "n_seeds"),
}  # fmt: skip
"""Columns of each table that are never null."""
