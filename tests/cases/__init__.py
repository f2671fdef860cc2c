"""Cases that several test files share."""
