"""Bounds and constructions beside training."""
