"""Decision which system is better, and why: pairs of runs to differences with verdicts."""
