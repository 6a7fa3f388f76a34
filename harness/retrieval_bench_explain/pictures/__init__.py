"""Pictures of differences."""
