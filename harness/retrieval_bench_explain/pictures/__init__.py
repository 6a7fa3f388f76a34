"""Pictures of differences and parts."""
