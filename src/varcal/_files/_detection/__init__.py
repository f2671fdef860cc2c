"""How a text file is written, found out from its first rows."""
