"""What is kept on disk to be used again: indexes, and how much of the cache is used."""
