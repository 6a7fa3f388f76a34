"""What was measured once and kept, what may get worse by how much, and whether it did."""
