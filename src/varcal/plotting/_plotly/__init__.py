"""Plots drawn with plotly."""
