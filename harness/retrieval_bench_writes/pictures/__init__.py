"""Pictures of freshness."""
