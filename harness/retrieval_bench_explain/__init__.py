"""Why runs differ, and what parts are for: by query, by group of queries, by leg, step and part."""
