"""Re-exports `naming_columns` for commands that still look for it here."""

from varcal.cli._input_files import naming_columns as naming_columns
