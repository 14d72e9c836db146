"""Engines: how a run is trained (``api``)."""
