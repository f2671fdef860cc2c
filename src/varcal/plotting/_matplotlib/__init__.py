"""Pictures drawn by matplotlib."""
