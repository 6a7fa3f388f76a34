"""Running and timing: knows retrievers and clocks, but no metric and no file."""
