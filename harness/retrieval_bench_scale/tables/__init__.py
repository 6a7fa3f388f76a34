"""Tables of sweeps and of encoded corpora."""
