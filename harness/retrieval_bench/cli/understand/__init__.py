"""Commands that say why: ``explain`` and its ledger."""
