"""Engines: each one reads rows from one kind of source and sums them into `BinnedStats`."""
