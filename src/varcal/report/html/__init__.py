"""The parts of every HTML page: markup, axes, charts."""
