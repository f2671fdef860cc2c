"""Run the code of documentation pages, and bring what they show up to date.

python tools/doc_pages.py docs/guides/audit.md [more pages]

A block of Python is followed by what it prints, in a block without a language, or by the picture
that it draws, or by both. A line "…" in a result stands for any number of lines.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n?```\n(?P<result>.*?)^```\n)?"
    r"(?:\n?!\[[^\]]*\]\((?P<picture>[^)]+)\))?",
    re.M | re.S,
)
#: A number with a decimal point.
_FRACTION = re.compile(r"\d*\.\d+")


@dataclass(frozen=True)
class Block:
    """A block of Python on a page, what it prints, and the path of the picture that it draws."""

    code: str
    result: str | None
    picture: str | None


def blocks(text: str) -> list[Block]:
    r"""Return the blocks of a page.

    >>> blocks("```python\nprint(1)\n```\n```\n1\n```\n")
    [Block(code='print(1)\n', result='1\n', picture=None)]
    """
    return [Block(**found.groupdict()) for found in _BLOCK.finditer(text)]


def agrees(shown: str, printed: str, *, exact: bool = True) -> bool:
    r"""Return whether a page shows what was printed.

    Unless it must be exact, the last digit of a fraction may differ by one, and spaces with it.

    >>> agrees("first\n…\nlast 0.9\n", "first\nsecond\nthird\nlast 0.9\n")
    True
    >>> [agrees("last 0.9\n", f"last {end}\n", exact=False) for end in ("1.0", "1.1", "1.00")]
    [True, False, False]
    """
    parts = [re.escape(part) for part in re.split(r"^…\n", shown, flags=re.M)]
    if exact:
        return re.fullmatch("(?:.*\n)*".join(parts), printed) is not None
    numbers = _FRACTION.findall(shown)
    loose = [
        re.sub(r"(?:\\ )+", r" +", re.sub(r"\d*\\\.\d+", r"(\\d*\\.\\d+)", one)) for one in parts
    ]
    found = re.fullmatch("(?:.*\n)*".join(loose), printed)
    return found is not None and all(
        len(a.partition(".")[2]) == len(b.partition(".")[2])
        and abs(float(a) - float(b)) < 1.5 * 10.0 ** -len(a.partition(".")[2])
        for a, b in zip(numbers, found.groups(), strict=True)
    )


def run(page: Path) -> Iterator[tuple[Block, str, Any]]:
    """Run a page block by block, and yield each with what it printed and its last figure, if any.

    Run in the current folder, with one scope for all blocks of the page.
    """
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    scope: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        plt.close("all")
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(block.code, page.name, "exec"), scope)
        yield block, printed.getvalue(), plt.gcf() if plt.get_fignums() else None
    plt.close("all")


def update(page: Path) -> None:
    """Write what the blocks of a page print, and the pictures that they draw."""
    text = page.read_text(encoding="utf-8")
    home = page.resolve().parent
    pieces, end = [], 0
    with _elsewhere():
        for found, (block, printed, figure) in zip(_BLOCK.finditer(text), run(page), strict=True):
            if block.result is not None and not agrees(block.result, printed):
                first, last = found.span("result")
                pieces += [text[end:first], printed]
                end = last
            if block.picture and figure:
                save(figure, home / block.picture)
    page.write_text("".join(pieces) + text[end:], encoding="utf-8")


@contextmanager
def _elsewhere() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def save(plot: Any, path: Path) -> None:
    """Write one figure as a small PNG file."""
    from PIL import Image  # noqa: PLC0415

    figure = getattr(plot, "figure", plot)
    png = BytesIO()
    figure.savefig(png, dpi=140)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(png).convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name).resolve())
