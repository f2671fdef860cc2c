"""The paper's experiments, run again, with every published figure next to ours."""
