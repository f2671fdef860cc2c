"""Text for people: numbers, gaps, edges of bins, sentences, tables, progress."""
