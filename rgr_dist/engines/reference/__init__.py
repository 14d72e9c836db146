"""The paper's training loops, taken literally: every other engine is checked against them."""
