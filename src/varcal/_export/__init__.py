"""Fitted calibrators as SQL, ONNX and Python, and as a fast function of one row."""
