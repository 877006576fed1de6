"""Models without Python: C libraries and WebAssembly modules."""
