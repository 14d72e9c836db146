"""The stored tables: columns, units, version.

``RUNS`` is the raw record, one row per trained run. ``THRESHOLDS`` and ``DECISIONS``
belong to one study and can be rebuilt from the runs and the study file alone. ``ALL_PAIRS`` is what
``rgr all-pairs`` measured of the runs behind a study's thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import float_info

import pyarrow as pa

from rgr_dist.study.spec import LARGEST_COUNT

SCHEMA_VERSION = 6
"""Raise it where columns change, or what they may hold: no older rgr-dist then rewrites such parts.

2 added ``null_rate`` to runs; it is null in parts of version 1. 3 added ``trained_to`` to runs,
which is null before; ``max_steps``, ``confirmed``, ``fresh_mean``, ``fresh_seeds`` and
``D_K_first`` to thresholds; and ``max_steps``, ``want`` and ``first_seed`` to decisions, in place
of ``longer``. 4 added the columns of facts, which are null for every other model: ``d_vo``,
``D_V``, the accuracies and the ranks to runs; the widths to thresholds and decisions. 5 added
``parameters`` and ``cached`` to runs, which are null but for layers of their own files. 6 added the
stop_reason ``given_up``.
"""


@dataclass(frozen=True)
class Kind:
    """What a column may hold: its type, and the least and the most of its numbers."""

    type: pa.DataType
    least: float = 0.0
    most: float = LARGEST_COUNT


TEXT, YES_NO = Kind(pa.string()), Kind(pa.bool_())
INT, LONG = Kind(pa.int32()), Kind(pa.int64())
SIZE, STEPS = Kind(pa.int32(), 1), Kind(pa.int64(), 1)
REAL, SHARE = Kind(pa.float64(), -float_info.max, float_info.max), Kind(pa.float64(), 0, 1)
SCORE, SECONDS = Kind(pa.float64(), 0, float_info.max), Kind(pa.float64(), 0, 1e9)
TIME = Kind(pa.timestamp("us", tz="UTC"), 0, 253_402_300_799e6)
"""A time up to the end of the year 9999."""


def _table(name: str, *columns: tuple[str, Kind, str]) -> pa.Schema:
    fields = [pa.field(name, kind.type, metadata={"about": about}) for name, kind, about in columns]
    return pa.schema(fields, metadata={"table": name, "version": str(SCHEMA_VERSION)})


COLUMNS_OF_RUNS = (
    ("run_id", TEXT, "hash of config; the run's address"),
    ("cell_id", TEXT, "hash of the cell's part of config"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family; of facts the database's"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("embedding", TEXT, "embedding family"),
    ("m", SIZE, "items; of facts the triples"),
    ("d_model", SIZE, "embedding width"),
    ("h", SIZE, "heads"),
    ("d_k", SIZE, "key width of a head; d_qk of facts"),
    ("D_K", SIZE, "total key width, h * d_k"),
    ("d_vo", SIZE, "value width of a head of facts"),
    ("D_V", SIZE, "total value width of facts, h * d_vo"),
    ("seed", INT, "seed; pairs runs across h and d_k of a cell"),
    ("context_length", SIZE, "items in a context, l; pairs of items for the transformer"),
    ("positive_rate", SHARE, "target-in-context rate, rho; unused by the transformer"),
    ("max_steps", STEPS, "step limit, contexts or batches"),
    ("trained_to", STEPS, "step limit of the training that it was read off; max_steps of its own"),
    ("score", SCORE, "test micro-F1; transformer, facts: accuracy; value: mean squared error"),
    ("val_score", SCORE, "the same on validation, at the last check; transformer: the best"),
    ("threshold_tau", REAL, "learned decision threshold tau; null without one"),
    ("null_rate", SHARE, "share of the transformer's test queries answered with NULL"),
    ("argmax_accuracy", SHARE, "of facts: share of triples whose value has the top logit"),
    ("softmax_accuracy", SHARE, "of facts: share whose value has a probability of tau"),
    ("rank_logits", INT, "of facts: largest rank of an unfolding of the logits L"),
    ("rank_argmax", INT, "of facts: the same of the 0/1 tensor argmax(L)"),
    ("parameters", LONG, "of a layer of its own file: numbers that are trained, but for tau"),
    ("cached", LONG, "of such a layer: numbers cached for each token; null where it does not say"),
    ("by_tau", TEXT, "of facts, JSON: [tau, accuracy, the same of softmax>=tau(L)], each"),
    ("steps", LONG, "training steps done: contexts, or batches for the transformer"),
    ("stop_reason", TEXT, "converged | max_steps | given_up | diverged | failed"),
    ("error", TEXT, "what failed; null unless stop_reason is failed"),
    ("engine", TEXT, "engine that trained the run"),
    ("device", TEXT, "cpu or cuda, and the processor's name"),
    ("seconds", SECONDS, "share of its program's wall time, s; 0 where read off another run"),
    ("finished_at", TIME, "when the run ended"),
    ("versions", TEXT, "rgr-dist, torch, numpy and numba versions"),
    ("git_revision", TEXT, "source revision, where known"),
    ("config", TEXT, "canonical JSON of everything the numbers depend on"),
)
RUNS = _table("runs", *COLUMNS_OF_RUNS)
BOUNDS = {name: kind for name, kind, _ in COLUMNS_OF_RUNS if kind is not TEXT}
"""Between what the numbers of ``RUNS`` are; scores that are shares are at most 1."""

KEYS = (
    "run_id", "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "h", "d_k",
    "D_K", "seed", "max_steps", "steps", "stop_reason", "seconds", "finished_at", "config",
)  # fmt: skip
"""Columns of ``RUNS`` that are null in no row."""
OF_FACTS = (
    "d_vo", "D_V", "argmax_accuracy", "softmax_accuracy", "rank_logits", "rank_argmax", "by_tau",
)  # fmt: skip
"""Columns of ``RUNS`` that are null but for model facts."""
OF_LAYERS = ("parameters", "cached")
"""Columns of ``RUNS`` that are null but for layers of their own files."""
RESULTS = (
    "score", "val_score", "threshold_tau", "null_rate", "argmax_accuracy", "softmax_accuracy",
    "rank_logits", "rank_argmax", "by_tau", *OF_LAYERS, "steps", "stop_reason",
)  # fmt: skip
"""Columns of ``RUNS`` that a run's training gives: the same whoever trains it, and when."""
SINCE_VERSION = {
    "null_rate": 2,
    "trained_to": 3,
    **dict.fromkeys(OF_FACTS, 4),
    **dict.fromkeys(OF_LAYERS, 5),
}
"""The version that added a column to ``RUNS``; the others were in the first."""


def columns_of_version(version: int) -> list[pa.Field]:
    """The columns that a part of a schema version has."""
    return [field for field in RUNS if SINCE_VERSION.get(field.name, 1) <= version]


THRESHOLDS = _table(
    "thresholds",
    ("cell_id", TEXT, "hash of the cell's part of a run's config"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("m", INT, "items"),
    ("d_model", INT, "embedding width"),
    ("h", INT, "heads"),
    ("d_k", INT, "smallest passing key width; null unless found"),
    ("D_K", INT, "h * d_k; null unless found"),
    ("D_K_low", INT, "optimistic D_K (App. A.2), or the smallest D_K not excluded"),
    ("D_K_high", INT, "conservative D_K (App. A.2), or the smallest D_K known to pass"),
    ("status", TEXT, "found | censored | pruned | inconsistent | open"),
    ("mean_score", REAL, "mean test score at d_k"),
    ("n_seeds", INT, "seeds behind mean_score"),
    ("certificate", TEXT, "JSON: the probe that passes and the next one below, which fails"),
    ("because", TEXT, "reason for the status, in words"),
    (
        "limited_by",
        TEXT,
        "by the study alone: budget where D_K falls with more steps, else unknown",
    ),
    ("n_edges", INT, "relations m'; null in older tables, where it is degree * m"),
    ("max_steps", LONG, "step limit of the threshold's runs"),
    ("confirmed", YES_NO, "whether it passes on fresh seeds; null where that was not asked"),
    ("fresh_mean", REAL, "mean test score on the fresh seeds"),
    ("fresh_seeds", INT, "fresh seeds behind fresh_mean"),
    ("D_K_first", INT, "smallest D_K that passes on the first seeds alone"),
    ("d_vo", INT, "of facts: smallest passing value width, as for d_k; null unless found"),
    ("D_V", INT, "of facts: h * d_vo; null unless found"),
    ("D_V_low", INT, "of facts: as D_K_low"),
    ("D_V_high", INT, "of facts: as D_K_high"),
    ("D_V_first", INT, "of facts: as D_K_first"),
)

DECISIONS = _table(
    "decisions",
    ("cell_id", TEXT, "hash of the cell's part of a run's config"),
    ("m", INT, "items"),
    ("d_model", INT, "embedding width"),
    ("step", INT, "order within the cell"),
    ("h", INT, "heads"),
    ("d_k", INT, "key width probed"),
    ("D_K", INT, "h * d_k"),
    ("max_steps", LONG, "step limit"),
    ("want", TEXT, "verdict | every seed | extra seeds | fresh seeds | transition"),
    ("first_seed", INT, "the smallest of the seeds behind the verdict"),
    ("reason", TEXT, "why this probe came next"),
    ("verdict", TEXT, "pass | fail | open"),
    ("mean_score", REAL, "mean test score of the seeds that ran"),
    ("n_seeds", INT, "seeds that ran"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("evidence", TEXT, "what decided it, such as the curtailment of seeds"),
    ("d_vo", INT, "of facts: value width probed"),
    ("D_V", INT, "of facts: h * d_vo"),
)

ALL_PAIRS = _table(
    "all_pairs",
    ("run_id", TEXT, "the run that was trained again"),
    ("cell_id", TEXT, "hash of the cell's part of config"),
    ("m", INT, "items"),
    ("d_model", INT, "embedding width"),
    ("h", INT, "heads"),
    ("d_k", INT, "key width of a head"),
    ("D_K", INT, "h * d_k"),
    ("seed", INT, "seed"),
    ("precision", TEXT, "format that W_Q and W_K were rounded to"),
    ("bits", INT, "bits of a parameter in that format"),
    ("score", REAL, "micro-F1 on the sampled test contexts"),
    ("f1", REAL, "micro-F1 on all m * m pairs"),
    ("failed_pairs", LONG, "wrong ones of all pairs"),
    ("margin", REAL, "distance of the score nearest to tau; negative if one is wrong"),
)
