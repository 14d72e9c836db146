"""The same trainings by others: in JAX, and by torch.compile."""
