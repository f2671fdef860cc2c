"""The description of a fitted calibrator, in words and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from varcal._input.frames import frame_of
from varcal._text import Shown, text_table


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """The description that a calibrator's `describe()` returns.

    Attributes
    ----------
    calibrator : str
        The name of the calibrator's class.
    words : str
        A few sentences.
    rows : tuple of dict
        The table: one dict per row, all with the same keys.

    Examples
    --------
    >>> shown = Description("PlattCalibrator", "One sentence.", ({"slope": 1.25, "n": 3},))
    >>> print(shown)
    PlattCalibrator. One sentence.
    slope  n
    1.25   3
    """

    calibrator: str
    words: str
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "calibrator": self.calibrator,
            "words": self.words,
            "rows": [dict(row) for row in self.rows],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the table as a frame of the given library, by default pandas."""
        names = list(self.rows[0]) if self.rows else []
        return frame_of({name: [row[name] for row in self.rows] for name in names}, backend)

    def __str__(self) -> str:
        head, cells, _ = self._shown()
        return f"{head}\n{text_table(cells)}" if cells else head

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        names = list(self.rows[0]) if self.rows else []
        cells = {name: [_formatted(row[name]) for row in self.rows] for name in names}
        return f"{self.calibrator}. {self.words}", cells, ""


def _formatted(value: object) -> str:
    """Format with six digits: coefficients of unscaled variables are small."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
