"""Tables of sweeps, of encoded corpora and of what is kept."""
