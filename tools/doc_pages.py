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
#: A number with the spaces before it, which depend on its width.
_NUMBER = re.compile(r"\s*(?<![\w.])[-−+]?\d+(?:,\d{3})*(?:\.\d*)?(?:e[-+]?\d+)?")


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


def agrees(shown: str, printed: str, *, exact: bool = False) -> bool:
    r"""Return whether a page shows what was printed.

    Processors round sums differently. Unless it must be exact, the text without numbers is the
    same but for spaces, and each number is at most one unit of its last digit away.

    >>> agrees("first\n…\nlast 0.9\n", "first\nsecond\nthird\nlast 1.0\n")
    True
    >>> [agrees("last 0.9\n", f"last {end}\n") for end in ("1.1", "0.95 points")]
    [False, False]
    >>> agrees("[ 0.  1.] of 1,000", "[-0.  1.] of 999"), agrees("p 1", "p 2", exact=True)
    (True, False)
    """
    parts = re.split(r"^…\n", shown, flags=re.M)
    if exact:
        return re.fullmatch("(?:.*\n)*".join(map(re.escape, parts)), printed) is not None
    found = re.fullmatch(r"(?:.*\n)*".join(map(_loose, parts)), printed)
    numbers = [one for part in parts for one in _NUMBER.findall(part)]
    return found is not None and all(map(_near, numbers, found.groups()))


def _loose(text: str) -> str:
    """Return a pattern of a text with a group for each number, and with any spaces."""
    others = [re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(one)) for one in _NUMBER.split(text)]
    return f"({_NUMBER.pattern})".join(others)


def _near(*numbers: str) -> bool:
    """Tell whether two numbers differ by at most one unit of the last digit of either."""
    plain = [one.strip().replace("−", "-").replace(",", "") for one in numbers]
    units = []
    for one in plain:
        digits, _, power = one.partition("e")
        units.append(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))
    a, b = map(float, plain)
    return abs(a - b) <= 1.001 * max(units)


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
            if block.result is not None and not agrees(block.result, printed, exact=True):
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
