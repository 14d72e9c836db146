"""Tunes the training protocol with Optuna."""
