"""Files of rows: read, streamed, and written whole or not at all."""
