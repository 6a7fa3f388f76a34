"""What several tests build: datasets, runs, models, sides of a duet, repositories."""
