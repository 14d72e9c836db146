"""Training loops in torch, many lanes at a time, on any device."""
