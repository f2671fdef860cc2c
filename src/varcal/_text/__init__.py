"""Text for people: tables, numbers, edges of bins, progress."""
