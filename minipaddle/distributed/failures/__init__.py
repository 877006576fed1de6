"""Ranks that fail: who hears of it, who tells it, and jobs that go on without them."""
