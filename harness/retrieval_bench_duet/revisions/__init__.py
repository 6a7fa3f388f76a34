"""Git revisions as sides of a duet: their files, and an environment that holds what differs."""
