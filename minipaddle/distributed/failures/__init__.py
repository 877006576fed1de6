"""Ranks that fail: how the others learn of it, and jobs that continue without them."""
