"""Studies of facts."""
