"""Commands that say why: ``explain``, its ledger, ``tune``, ``doctor``."""
