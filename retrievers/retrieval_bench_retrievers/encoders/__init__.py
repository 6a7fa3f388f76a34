"""Models and the vectors they make: loading, limits, and what is kept on disk."""
