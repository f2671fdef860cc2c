"""A fitted additive model as look-up tables, which are fast for many rows."""
