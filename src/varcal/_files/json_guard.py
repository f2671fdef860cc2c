"""A check of JSON lines in front of PyArrow, whose parser some lines crash.

A first row that is ``null``, or a value that is nested very deeply, ends the process inside
PyArrow. The check looks only at how braces and brackets are nested; all other faults of a line
are left to the parser, which reports them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from varcal.exceptions import InputError

#: How deeply objects and lists of a row may be nested. PyArrow crashes from some 10,000 levels
#: on; columns of real data have a handful, and this leaves a wide margin on both sides.
MAX_DEPTH = 100
#: The most bytes of one line. A row of 10,000 numbers takes some 300 kB.
MAX_LINE_BYTES = 1 << 26

_OPENING, _CLOSING = b"{[", {ord("}"): ord("{"), ord("]"): ord("[")}
_ESCAPE = re.compile(rb"\\[^\n]")
_STRING = re.compile(rb'"[^"]*"')
_NOT_MARKS = bytes(set(range(256)) - set(b"{}[]\n"))
_NOT_MARKS_OR_QUOTES = bytes(set(range(256)) - set(b'{}[]"'))


def check_lines(block: bytes, first_line: int, shown: str) -> None:
    r"""Refuse lines that are not one JSON object each, or that are nested too deeply.

    Parameters
    ----------
    block : bytes
        Complete lines in UTF-8.
    first_line : int
        The number of the first line within the file, counted from 1.
    shown : str
        The name of the file in messages.

    Raises
    ------
    InputError
        If a line has to be refused; the message says which.

    >>> check_lines(b'{"p": 0.5, "tags": ["a", "]"]}\n\n', 1, "'rows.jsonl'")
    >>> check_lines(b'{"p": 0.5}\nnull\n', 1, "'rows.jsonl'")
    Traceback (most recent call last):
    varcal.exceptions.InputError: line 2 of 'rows.jsonl' is not a JSON object: 'null'
    hint: JSON lines have one object per line, such as {"y": 1, "p": 0.83}
    """
    marks = block.translate(None, _NOT_MARKS).split(b"\n")
    for k, (line, shape) in enumerate(zip(block.split(b"\n"), marks, strict=True)):
        text = line.strip()
        if text[:1] == b"{" and text[-1:] == b"}":
            # A line with one pair of braces is a flat object, whatever its texts contain.
            fault = "" if shape == b"{}" else _fault(_shape(text))
        else:
            fault = "is not a JSON object" if text else ""
        if fault:
            excerpt = text[:40].decode("utf-8", "replace") + ("…" if len(text) > 40 else "")
            raise InputError(
                f"line {first_line + k:,} of {shown} {fault}: {excerpt!r}",
                'JSON lines have one object per line, such as {"y": 1, "p": 0.83}',
            )


def _shape(line: bytes) -> bytes:
    """Return the braces and brackets of a line that are outside of its texts."""
    plain = _ESCAPE.sub(b"", line) if b"\\" in line else line
    return _STRING.sub(b"", plain.translate(None, _NOT_MARKS_OR_QUOTES))


def _fault(shape: bytes) -> str:
    """Say what is wrong with the nesting of a line; an empty text if nothing is."""
    open_ones = bytearray()
    for k, mark in enumerate(shape):
        if mark in _OPENING:
            open_ones.append(mark)
            if len(open_ones) > MAX_DEPTH:
                return f"is nested more than {MAX_DEPTH} levels deep"
        elif not open_ones or open_ones.pop() != _CLOSING.get(mark):
            return "is not a JSON object"
        elif not open_ones and k < len(shape) - 1:
            return "has more than one JSON object"
    return "is not a complete JSON object" if open_ones else ""


def line_blocks(stream: Any, block_bytes: int, shown: str) -> Iterator[bytes]:
    """Yield a stream in blocks of complete lines that have been checked.

    Parameters
    ----------
    stream : file
        Bytes in UTF-8.
    block_bytes : int
        The usual size of a block; a longer line is a block of its own.
    shown : str
        The name of the file in messages.
    """
    line = 1
    rest: list[bytes] = []
    while more := stream.read(block_bytes):
        head, newline, tail = more.rpartition(b"\n")
        if newline:
            block = b"".join([*rest, head, newline])
            check_lines(block, line, shown)
            yield block
            line += block.count(b"\n")
        rest = [tail] if newline else [*rest, more]
        if sum(map(len, rest)) > MAX_LINE_BYTES:
            raise InputError(
                f"line {line:,} of {shown} is longer than {MAX_LINE_BYTES >> 20} MB",
                "JSON lines have one object per line",
            )
    last = b"".join(rest)
    if last.strip():
        check_lines(last, line, shown)
        yield last


class CheckedLines(io.RawIOBase):
    """The checked lines of a stream, as a file for PyArrow.

    Parameters
    ----------
    blocks : iterator of bytes
        As `line_blocks` yields them.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Tell that the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the current block goes; return the number of bytes."""
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n
