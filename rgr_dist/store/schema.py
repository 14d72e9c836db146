"""The stored table of runs: its columns, and what each says."""

from __future__ import annotations

import pyarrow as pa

TEXT = pa.string()
INT, LONG, REAL = pa.int32(), pa.int64(), pa.float64()
TIME = pa.timestamp("us", tz="UTC")


COLUMNS = (
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
RUNS = pa.schema([pa.field(name, kind, metadata={"about": about}) for name, kind, about in COLUMNS])
"""One row per trained run."""

OF_LAYERS = ("parameters", "cached")
"""Columns of ``RUNS`` that are null except for layers from a file or the zoo."""
RESULTS = (
    "score", "val_score", "threshold_tau", "null_rate", *OF_LAYERS, "details", "steps",
    "stop_reason",
)  # fmt: skip
"""Columns of ``RUNS`` that training a run yields: the same no matter where and when it trains."""
