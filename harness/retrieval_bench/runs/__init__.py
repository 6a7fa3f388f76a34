"""A run as arrays and files: rankings, raw times, values per query, and what they say."""
