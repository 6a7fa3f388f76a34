"""Tables from summaries, in several formats; formats numbers, decides nothing."""
