"""How runs on a dataset are judged: on fixed queries, until decided, or not at all."""
