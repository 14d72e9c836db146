"""The paper's training loops, literally: what every other engine is held to."""
