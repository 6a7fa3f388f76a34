"""This copy and what is around it: its version, modules by name, git, the folder of the cache."""
