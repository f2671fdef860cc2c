"""The report of a monitor: its content, and its forms."""
