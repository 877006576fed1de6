"""Programs computed by NumPy, in blocks or in the memory of a plan, where nothing compiles."""
