"""Parts of the native executor: files in parts, tuned choices, clocks, who owns the cache."""
