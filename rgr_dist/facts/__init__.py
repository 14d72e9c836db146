"""Facts held by an attention layer (arXiv:2502.05076, of which we have only a summary)."""
