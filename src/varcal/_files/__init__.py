"""Reading, streaming and writing files of rows."""
