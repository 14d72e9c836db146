"""Compiled training of model ``facts``: its logits computed from their factors."""
