"""The content of the report of a monitor, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._monitor.view import MonitorView
from varcal._text.sentences import Sentence


@dataclass(frozen=True)
class LogEntry:
    """An alarm, an acknowledgement or a reset."""

    what: str
    id: str
    note: str


@dataclass(frozen=True)
class MonitorSummary:
    """The content of the report of a monitor.

    Attributes
    ----------
    headline, lede : Sentence
        Alarm or not, where and since when; how large the gap is, and how sure that is.
    badge : str
        The same in one or two words.
    look : {"bad", "watch", "ok"}
        How urgent it is.
    steps : tuple of (str, Sentence)
        What to do next, each with its title.
    facts : tuple of (str, str)
        Numbers and settings.
    view : MonitorView
        What is drawn.
    log : tuple of LogEntry
        Alarms, acknowledgements and resets, the latest first.
    """

    title: str
    created: str
    headline: Sentence
    lede: Sentence
    badge: str
    look: str
    steps: tuple[tuple[str, Sentence], ...]
    facts: tuple[tuple[str, str], ...]
    view: MonitorView
    log: tuple[LogEntry, ...]
    notes: tuple[Sentence, ...]
    method: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    citation: tuple[str, ...]
