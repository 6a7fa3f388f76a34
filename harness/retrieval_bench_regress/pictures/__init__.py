"""Pictures of history."""
