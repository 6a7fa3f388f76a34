"""What runs in a fresh process; no module imports it, it is started by name."""
