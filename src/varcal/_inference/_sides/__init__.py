"""Several claims at once: tests and laws of gaps by predicted side."""
