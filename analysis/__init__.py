"""From stored runs to thresholds, laws, figures and the report; no torch, no Ray."""
