"""Work of other programs: runs and answers, scored by a convention."""
