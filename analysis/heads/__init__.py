"""How thresholds depend on the number of heads."""
