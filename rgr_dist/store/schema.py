"""The stored tables: their columns, and what each says.

``RUNS`` is the raw record, one row per trained run. ``THRESHOLDS`` follows from a study and its
runs.
"""

from __future__ import annotations

import pyarrow as pa

TEXT, YES_NO = pa.string(), pa.bool_()
INT, LONG, REAL = pa.int32(), pa.int64(), pa.float64()
TIME = pa.timestamp("us", tz="UTC")


def _table(name: str, *columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    fields = [pa.field(column, kind, metadata={"about": about}) for column, kind, about in columns]
    return pa.schema(fields, metadata={"table": name})


RUNS = _table(
    "runs",
    ("run_id", TEXT, "address of the run: a hash of config"),
    ("cell_id", TEXT, "hash of the part of config that describes the cell"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("embedding", TEXT, "embedding family"),
    ("m", INT, "number of items"),
    ("d_model", INT, "embedding width"),
    ("h", INT, "number of heads"),
    ("d_k", INT, "key width of a head"),
    ("D_K", INT, "total key width, h * d_k"),
    ("seed", INT, "seed; it pairs the runs of a cell across h and d_k"),
    ("context_length", INT, "items per context, l; for the transformer, pairs of items"),
    ("positive_rate", REAL, "target-in-context rate, rho; the transformer does not use it"),
    ("max_steps", LONG, "step limit, in contexts or batches"),
    ("trained_to", LONG, "step limit of the training it was read from; max_steps if its own"),
    ("score", REAL, "test micro-F1; accuracy for the transformer, error (MSE) for value"),
    ("val_score", REAL, "the same on validation data at the last check; transformer: the best"),
    ("threshold_tau", REAL, "learned decision threshold tau; null if there is none"),
    ("null_rate", REAL, "share of the transformer's test queries answered with NULL"),
    ("parameters", LONG, "for a layer from a file or the zoo: trained parameters, without tau"),
    ("cached", LONG, "for such a layer: numbers cached per token; null if it does not say"),
    ("details", TEXT, "JSON: what a model with a room of its own reports besides; null for others"),
    ("steps", LONG, "training steps done: contexts, or batches for the transformer"),
    ("stop_reason", TEXT, "converged | max_steps | diverged | failed"),
    ("error", TEXT, "why the run failed; null unless stop_reason is failed"),
    ("engine", TEXT, "engine that trained the run"),
    ("device", TEXT, "cpu or cuda, and the name of the processor"),
    ("seconds", REAL, "its share of the program's wall time, s; 0 if read from another run"),
    ("finished_at", TIME, "when the run ended"),
    ("versions", TEXT, "versions of rgr-dist, torch, numpy and numba"),
    ("git_revision", TEXT, "source revision, if known"),
    ("config", TEXT, "canonical JSON of everything that the numbers depend on"),
)

OF_LAYERS = ("parameters", "cached")
"""Columns of ``RUNS`` that are null except for layers from a file or the zoo."""
RESULTS = (
    "score", "val_score", "threshold_tau", "null_rate", *OF_LAYERS, "details", "steps",
    "stop_reason",
)  # fmt: skip
"""Columns of ``RUNS`` that training a run yields: the same no matter where and when it trains."""

THRESHOLDS = _table(
    "thresholds",
    ("cell_id", TEXT, "hash of the part of a run's config that describes the cell"),
    ("model", TEXT, "model variant"),
    ("graph", TEXT, "graph family"),
    ("degree", INT, "largest out-degree; r in an r-regular graph"),
    ("m", INT, "number of items"),
    ("d_model", INT, "embedding width"),
    ("h", INT, "number of heads"),
    ("d_k", INT, "smallest key width that passes; null unless found"),
    ("D_K", INT, "h * d_k; null unless found"),
    ("D_K_low", INT, "optimistic D_K (App. A.2), or the smallest D_K not ruled out"),
    ("D_K_high", INT, "conservative D_K (App. A.2), or the smallest D_K known to pass"),
    ("status", TEXT, "found | censored | pruned | open"),
    ("mean_score", REAL, "mean test score at d_k"),
    ("n_seeds", INT, "number of seeds in mean_score"),
    ("fails_above", pa.list_(pa.int64()), "larger d_k that fail"),
    ("certificate", TEXT, "JSON: the probe that passes and the next one below, which fails"),
    ("because", TEXT, "the reason for the status, in words"),
    ("n_edges", INT, "number of relations m'; null in older tables, where it is degree * m"),
    ("max_steps", LONG, "step limit of the threshold's runs"),
    ("confirmed", YES_NO, "whether it passes on fresh seeds; null if that was not asked"),
    ("fresh_mean", REAL, "mean test score on the fresh seeds"),
    ("fresh_seeds", INT, "number of fresh seeds in fresh_mean"),
    ("D_K_first", INT, "smallest D_K that passes on the first seeds alone"),
)
