"""What the benchmarks of the search compare it with, and the curves that they simulate it on."""
