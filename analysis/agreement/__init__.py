"""Our numbers beside those that the paper states."""
