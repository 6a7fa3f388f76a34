"""Files that hold text, rows or lists, packed or in shards, read line by line with their faults."""
