"""The same training by other means: in JAX, and by torch.compile."""
