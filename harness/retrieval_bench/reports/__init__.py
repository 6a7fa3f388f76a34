"""Data to text: tables, pictures and the one-file page; computes and decides nothing."""
