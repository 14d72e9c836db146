"""What several heads are worth."""
