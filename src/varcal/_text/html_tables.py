"""Results as tables in notebooks, where all text is escaped, and in terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from varcal._text.tables import WIDTH, show_cell, text_table, wrapped

#: Rows of a table that is shown.
_ROWS = 25


class Shown:
    """Shows a result as a heading, a table and a note, in a terminal and in a notebook.

    A dataclass that inherits from this needs ``repr=False``.
    """

    def _shown(self) -> tuple[str, Mapping[str, Sequence[Any]], str]:
        """Return the heading, the columns of the table, and the note."""
        raise NotImplementedError

    def __repr__(self) -> str:
        heading, columns, note = self._parts()
        rows = text_table(columns).split("\n") if columns else []
        rows = [row if len(row) <= WIDTH else f"{row[: WIDTH - 1]}…" for row in rows]
        return "\n".join([wrapped(heading), *rows, *([wrapped(note)] if note else [])])

    def _repr_html_(self) -> str:
        heading, columns, note = self._parts()
        return html_table(columns, heading, note)

    def _parts(self) -> tuple[str, Mapping[str, Sequence[Any]], str]:
        """Return what is shown: of a long table its first rows."""
        heading, columns, note = self._shown()
        more = max((len(values) for values in columns.values()), default=0) - _ROWS
        if more > 0:
            columns = {name: values[:_ROWS] for name, values in columns.items()}
            note = f"… {more:,} more rows\n{note}".rstrip()
        return heading, columns, note


def html_table(columns: Mapping[str, Sequence[Any]], caption: str, note: str = "") -> str:
    """Write columns as an HTML table.

    >>> html_table({"bin": ["<a>"], "n": [1234]}, "by v")[-53:]
    '<td>&lt;a&gt;</td><td>1,234</td></tr></tbody></table>'
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    rows = []
    for k in range(max((len(values) for values in columns.values()), default=0)):
        cells = (escape(show_cell(values[k], name)) for name, values in columns.items())
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    lines = "<br>".join(escape(line) for line in caption.split("\n"))
    after = f"<p>{'<br>'.join(escape(line) for line in note.split(chr(10)))}</p>" if note else ""
    return (
        f'<table><caption style="text-align:left">{lines}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{after}"
    )
