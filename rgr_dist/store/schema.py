"""The stored tables: columns, units, version.

``RUNS`` is the raw record, one row per trained run. ``THRESHOLDS`` and ``DECISIONS``
belong to one study and can be rebuilt from the runs and the study file alone. ``ALL_PAIRS`` is what
``rgr all-pairs`` measured of the runs behind a study's thresholds.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 4
"""Raise it whenever columns change, so that no older rgr-dist rewrites parts without the new ones.

2 added ``null_rate`` to runs; it is null in parts of version 1. 3 added ``trained_to`` to runs,
which is null before; ``max_steps``, ``confirmed``, ``fresh_mean``, ``fresh_seeds`` and
``D_K_first`` to thresholds; and ``max_steps``, ``want`` and ``first_seed`` to decisions, in place
of ``longer``. 4 added the columns of facts, which are null for every other model: ``d_vo``,
``D_V``, the accuracies and the ranks to runs; the widths to thresholds and decisions.
"""


def _table(name: str, *columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    fields = [pa.field(column, kind, metadata={"about": about}) for column, kind, about in columns]
    return pa.schema(fields, metadata={"table": name, "version": str(SCHEMA_VERSION)})


RUNS = _table(
    "runs",
    ("run_id", pa.string(), "hash of config; the run's address"),
    ("cell_id", pa.string(), "hash of the cell's part of config"),
    ("model", pa.string(), "model variant"),
    ("graph", pa.string(), "graph family; of facts the database's"),
    ("degree", pa.int32(), "largest out-degree; r in an r-regular graph"),
    ("embedding", pa.string(), "embedding family"),
    ("m", pa.int32(), "items; of facts the triples"),
    ("d_model", pa.int32(), "embedding width"),
    ("h", pa.int32(), "heads"),
    ("d_k", pa.int32(), "key width of a head; d_qk of facts"),
    ("D_K", pa.int32(), "total key width, h * d_k"),
    ("d_vo", pa.int32(), "value width of a head of facts"),
    ("D_V", pa.int32(), "total value width of facts, h * d_vo"),
    ("seed", pa.int32(), "seed; pairs runs across h and d_k of a cell"),
    ("context_length", pa.int32(), "items in a context, l; pairs of items for the transformer"),
    ("positive_rate", pa.float64(), "target-in-context rate, rho; unused by the transformer"),
    ("max_steps", pa.int64(), "step limit, contexts or batches"),
    (
        "trained_to",
        pa.int64(),
        "step limit of the training that the row was read off: max_steps where it had its own",
    ),
    (
        "score",
        pa.float64(),
        "test micro-F1, accuracy (transformer, facts) or mean squared error (value), or null",
    ),
    (
        "val_score",
        pa.float64(),
        "the same on validation, at the last check; the best one for the transformer",
    ),
    ("threshold_tau", pa.float64(), "learned decision threshold tau; null without one"),
    ("null_rate", pa.float64(), "share of the transformer's test queries answered with NULL"),
    ("argmax_accuracy", pa.float64(), "of facts: share of triples whose value has the top logit"),
    ("softmax_accuracy", pa.float64(), "of facts: share whose value has a probability of tau"),
    ("rank_logits", pa.int32(), "of facts: largest rank of an unfolding of the logits L"),
    ("rank_argmax", pa.int32(), "of facts: the same of the 0/1 tensor argmax(L)"),
    ("by_tau", pa.string(), "of facts, JSON: [tau, accuracy, the same of softmax>=tau(L)], each"),
    ("steps", pa.int64(), "training steps done: contexts, or batches for the transformer"),
    ("stop_reason", pa.string(), "converged | max_steps | diverged | failed"),
    ("error", pa.string(), "what failed; null unless stop_reason is failed"),
    ("engine", pa.string(), "engine that trained the run"),
    ("device", pa.string(), "cpu or cuda, and the processor's name"),
    (
        "seconds",
        pa.float64(),
        "the run's share of its program's wall time, s; 0 where it was read off another",
    ),
    ("finished_at", pa.timestamp("us", tz="UTC"), "when the run ended"),
    ("versions", pa.string(), "rgr-dist, torch, numpy and numba versions"),
    ("git_revision", pa.string(), "source revision, where known"),
    ("config", pa.string(), "canonical JSON of everything the numbers depend on"),
)

KEYS = (
    "run_id", "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "h", "d_k",
    "D_K", "seed", "max_steps", "steps", "stop_reason", "seconds", "finished_at", "config",
)  # fmt: skip
"""Columns of ``RUNS`` that are null in no row."""
STOP_REASONS = ("converged", "max_steps", "diverged", "failed")
OF_FACTS = (
    "d_vo", "D_V", "argmax_accuracy", "softmax_accuracy", "rank_logits", "rank_argmax", "by_tau",
)  # fmt: skip
"""Columns of ``RUNS`` that are null but for model facts."""
SINCE_VERSION = {"null_rate": 2, "trained_to": 3} | dict.fromkeys(OF_FACTS, 4)
"""The version that added a column to ``RUNS``; the others were in the first."""


def columns_of_version(version: int) -> list[pa.Field]:
    """The columns that a part of a schema version has."""
    return [field for field in RUNS if SINCE_VERSION.get(field.name, 1) <= version]


THRESHOLDS = _table(
    "thresholds",
    ("cell_id", pa.string(), "hash of the cell's part of a run's config"),
    ("model", pa.string(), "model variant"),
    ("graph", pa.string(), "graph family"),
    ("degree", pa.int32(), "largest out-degree; r in an r-regular graph"),
    ("m", pa.int32(), "items"),
    ("d_model", pa.int32(), "embedding width"),
    ("h", pa.int32(), "heads"),
    (
        "d_k",
        pa.int32(),
        "smallest passing key width, of a grid among those listed; null unless found",
    ),
    ("D_K", pa.int32(), "h * d_k; null unless found"),
    ("D_K_low", pa.int32(), "optimistic D_K (App. A.2), or the smallest D_K not excluded"),
    ("D_K_high", pa.int32(), "conservative D_K (App. A.2), or the smallest D_K known to pass"),
    ("status", pa.string(), "found | censored | pruned | inconsistent | open"),
    ("mean_score", pa.float64(), "mean test score at d_k"),
    ("n_seeds", pa.int32(), "seeds behind mean_score"),
    (
        "certificate",
        pa.string(),
        "JSON: the passing probe at d_k and the failing one at d_k - 1, or a grid's next one below",
    ),
    ("because", pa.string(), "reason for the status, in words"),
    (
        "limited_by",
        pa.string(),
        "budget where D_K falls at larger step limits; capacity where the last two have the same",
    ),
    ("n_edges", pa.int32(), "relations m'; null in older tables, where it is degree * m"),
    ("max_steps", pa.int64(), "step limit of the threshold's runs"),
    ("confirmed", pa.bool_(), "whether it passes on fresh seeds; null where that was not asked"),
    ("fresh_mean", pa.float64(), "mean test score on the fresh seeds"),
    ("fresh_seeds", pa.int32(), "fresh seeds behind fresh_mean"),
    ("D_K_first", pa.int32(), "smallest D_K that passes on the first seeds alone"),
    ("d_vo", pa.int32(), "of facts: smallest passing value width, as for d_k; null unless found"),
    ("D_V", pa.int32(), "of facts: h * d_vo; null unless found"),
    ("D_V_low", pa.int32(), "of facts: as D_K_low"),
    ("D_V_high", pa.int32(), "of facts: as D_K_high"),
    ("D_V_first", pa.int32(), "of facts: as D_K_first"),
)

DECISIONS = _table(
    "decisions",
    ("cell_id", pa.string(), "hash of the cell's part of a run's config"),
    ("m", pa.int32(), "items"),
    ("d_model", pa.int32(), "embedding width"),
    ("step", pa.int32(), "order within the cell"),
    ("h", pa.int32(), "heads"),
    ("d_k", pa.int32(), "key width probed"),
    ("D_K", pa.int32(), "h * d_k"),
    ("max_steps", pa.int64(), "step limit"),
    ("want", pa.string(), "verdict | every seed | extra seeds | fresh seeds | transition"),
    ("first_seed", pa.int32(), "the smallest of the seeds behind the verdict"),
    ("reason", pa.string(), "why this probe came next"),
    ("verdict", pa.string(), "pass | fail | open"),
    ("mean_score", pa.float64(), "mean test score of the seeds that ran"),
    ("n_seeds", pa.int32(), "seeds that ran"),
    ("degree", pa.int32(), "largest out-degree; r in an r-regular graph"),
    (
        "evidence",
        pa.string(),
        "what decided it, such as the inequality that made more seeds unnecessary",
    ),
    ("d_vo", pa.int32(), "of facts: value width probed"),
    ("D_V", pa.int32(), "of facts: h * d_vo"),
)

ALL_PAIRS = _table(
    "all_pairs",
    ("run_id", pa.string(), "the run that was trained again"),
    ("cell_id", pa.string(), "hash of the cell's part of config"),
    ("m", pa.int32(), "items"),
    ("d_model", pa.int32(), "embedding width"),
    ("h", pa.int32(), "heads"),
    ("d_k", pa.int32(), "key width of a head"),
    ("D_K", pa.int32(), "h * d_k"),
    ("seed", pa.int32(), "seed"),
    ("precision", pa.string(), "format that W_Q and W_K were rounded to"),
    ("bits", pa.int32(), "bits of a parameter in that format"),
    ("score", pa.float64(), "micro-F1 on the sampled test contexts"),
    ("f1", pa.float64(), "micro-F1 on all m * m pairs"),
    ("failed_pairs", pa.int64(), "wrong ones of all pairs"),
    ("margin", pa.float64(), "distance of the score nearest to tau; negative if one is wrong"),
)
