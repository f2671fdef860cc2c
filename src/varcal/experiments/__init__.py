"""The paper's experiments, from its files to its tables and figures."""
