"""Why runs differ: by query, by group of queries, by leg, step and part."""
