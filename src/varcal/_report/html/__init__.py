"""What every HTML page is made of: markup, axes, parts of charts, badges, the frame."""
