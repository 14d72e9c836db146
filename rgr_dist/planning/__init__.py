"""From a study and its stored rows to the state of its search and its tables: no Ray, no torch."""
