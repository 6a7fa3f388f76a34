"""Truth by rule: what hits must have, and what must not come, in place of judged ids."""
