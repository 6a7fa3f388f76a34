"""Commands on what can be named: ``data list``, ``data schema``."""
