"""Parts of the native executor: files in parts, tuned choices, clocks, the cache's owner."""
