"""Runs a study on Ray: plan, connect, train, write."""
