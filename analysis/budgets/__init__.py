"""Thresholds as the step limit grows."""
