"""Did it get worse? Baselines, the policy, gates, and the history of saved runs."""
