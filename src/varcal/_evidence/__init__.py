"""The tables that a call needs, from rows in memory, lazy rows or collected sums."""
