"""Engines: each turns rows of its own kind of source into BinnedStats."""
