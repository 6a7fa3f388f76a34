"""What other programs made: runs and answers, scored by a convention."""
