"""Several legs, fused into one ranking."""
