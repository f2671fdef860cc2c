"""HTML tables for notebooks: all text is escaped, the style is that of the notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from varcal._text.tables import show_cell


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
