"""Bounds and constructions compared with training."""
