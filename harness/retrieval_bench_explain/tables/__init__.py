"""Tables of what explains: queries, parts and losses."""
