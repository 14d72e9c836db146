"""Ray Tune carries out what the search decides."""
