"""Questions and judgements on their way in and out."""
