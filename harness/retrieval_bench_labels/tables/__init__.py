"""Tables of judgements: what is to be judged, how far it is, and what it shows."""
