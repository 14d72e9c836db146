"""Training loops compiled for a CPU, one lane at a time."""
