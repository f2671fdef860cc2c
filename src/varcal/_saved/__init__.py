"""Saved results of every kind: one document, one check of its contents, one budget."""
