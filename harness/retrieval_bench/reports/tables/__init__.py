"""What each command shows, as tables."""
