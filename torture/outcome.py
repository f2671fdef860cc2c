"""What happened: counts that are kept in a file, so that a run can go on where it stopped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: Failures that are kept in full; the others are only counted.
KEPT = 20


@dataclass
class Outcome:
    """The cases of one part that have been tried.

    Attributes
    ----------
    tried : int
        The number of cases.
    counts : dict
        How many of them ended in which way.
    failures : list of str
        Those that must not happen, each with the number of the case, which repeats it.
    """

    tried: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, ended: str, n: int = 1) -> None:
        """Count cases that ended as they may."""
        self.tried += n
        self.counts[ended] = self.counts.get(ended, 0) + n

    def fail(self, what: str) -> None:
        """Count a case that ended as it must not."""
        self.add("FAILED")
        if len(self.failures) < KEPT:
            self.failures.append(what)

    def join(self, other: Outcome) -> None:
        """Add the cases of another part of the same kind."""
        self.tried += other.tried
        self.counts = dict(Counter(self.counts) + Counter(other.counts))
        self.failures = (self.failures + other.failures)[:KEPT]

    def line(self, name: str) -> str:
        """Return a summary in one line."""
        ends = ", ".join(f"{n:,} {ended}" for ended, n in sorted(self.counts.items()))
        return f"{name:24} {self.tried:>9,} cases: {ends}"


class Record:
    """The outcomes of all parts, in a file of JSON.

    Parameters
    ----------
    path : Path or None
        The file; None to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.parts: dict[str, Outcome] = {}
        if path is not None and path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            self.parts = {name: Outcome(**one) for name, one in known.items()}

    @contextmanager
    def part(self, name: str) -> Iterator[Outcome]:
        """Give the outcome of a part, and keep it at the end of the block."""
        outcome = self.parts.setdefault(name, Outcome())
        try:
            yield outcome
        finally:
            self.save()
            print(outcome.line(name), flush=True)

    def save(self) -> None:
        """Write the file."""
        if self.path is not None:
            told = {name: asdict(one) for name, one in self.parts.items()}
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps(told, indent=1), encoding="utf-8")
            draft.replace(self.path)

    @property
    def failures(self) -> list[str]:
        """All failures, with the names of their parts."""
        return [f"{name}: {what}" for name, one in self.parts.items() for what in one.failures]
