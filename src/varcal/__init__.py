"""varcal: where along a variable a classifier's confidence is wrong."""
