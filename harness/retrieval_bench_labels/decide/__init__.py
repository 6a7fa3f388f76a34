"""What the judgements so far show, and which of them are needed next."""
