"""Audits of many variables and comparisons of several models."""
