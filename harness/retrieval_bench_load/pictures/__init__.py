"""Pictures of a load."""
