"""Reports of audits, comparisons and monitors, and the pictures of all results."""
