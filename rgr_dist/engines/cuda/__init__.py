"""Kernels for one GPU: the whole training of a lane in one thread block."""
