"""The entrance for data: predictions, variables, labels and events, checked once."""
