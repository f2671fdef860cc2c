"""Calibrators of score and variables: a tree over V, and regression with terms of V."""
