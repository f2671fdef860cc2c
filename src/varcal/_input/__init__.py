"""Reading and checking of input: predictions, variables, labels and events."""
