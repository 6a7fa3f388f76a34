"""Commands on what is given away or taken in: ``report``, ``data``."""
