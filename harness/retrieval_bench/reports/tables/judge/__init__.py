"""Tables of judgements and of what other programs made."""
