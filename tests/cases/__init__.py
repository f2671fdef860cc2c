"""Cases for several test files."""
