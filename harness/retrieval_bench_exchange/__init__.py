"""Ways in and out: datasets of other tools and of databases, in their formats."""
