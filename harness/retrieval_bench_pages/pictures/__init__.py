"""Pictures of systems side by side: quality against time, and metric by metric."""
