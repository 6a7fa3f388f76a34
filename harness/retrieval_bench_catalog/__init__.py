"""Names of what there is, and schemas of what is printed and of files that people write."""
