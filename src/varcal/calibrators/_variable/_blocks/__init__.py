"""Blocks of rows that share luck, and how it was judged how far a model is trusted."""
