"""Compiled training of the transformer block."""
