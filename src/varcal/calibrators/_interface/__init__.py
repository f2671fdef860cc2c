"""What all calibrators share."""
