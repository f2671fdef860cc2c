"""The versions that a report names."""

from __future__ import annotations

from varcal._options import check_text
from varcal.exceptions import InputError, shown


def check_versions(argument: str, versions: object) -> tuple[tuple[str, str], ...]:
    """Refuse anything but pairs of a library and its version.

    >>> check_versions("versions", [("varcal", "1.0")])
    (('varcal', '1.0'),)
    """
    pairs = list(versions) if isinstance(versions, list | tuple) else [None]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(
                f"{argument} must be pairs of a library and its version; got {shown(versions)}",
                'for example (("varcal", "1.0"),)',
                argument=argument,
            )
    return tuple(
        (check_text(argument, name), check_text(argument, version))
        for name, version in (pair for pair in pairs if pair is not None)
    )
