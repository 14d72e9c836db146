"""Tuning the protocol that trains a study's runs."""
