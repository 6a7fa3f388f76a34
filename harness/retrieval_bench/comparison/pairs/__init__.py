"""Two runs held against each other, query by query and call by call."""
