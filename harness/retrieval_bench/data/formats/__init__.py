"""The formats of datasets and of run files, a module each."""
