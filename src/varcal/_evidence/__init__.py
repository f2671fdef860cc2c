"""Who makes the tables of a call: rows in memory, lazy rows or collected sums."""
