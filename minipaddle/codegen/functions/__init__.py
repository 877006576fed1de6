"""C text of functions that formulas call."""
