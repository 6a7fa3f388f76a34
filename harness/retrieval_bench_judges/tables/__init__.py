"""Tables of judges: whether one is fit, and verdicts by people and by both."""
