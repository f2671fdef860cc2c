"""The columns of score, variables and pairs in the additive model."""
