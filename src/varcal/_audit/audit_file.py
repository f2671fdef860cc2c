"""Saved audits, read back."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from varcal._audit.audit_result import FORMAT, Audit
from varcal._options import checked
from varcal.exceptions import InputError


@checked()
def load_audit(path: str | PathLike[str]) -> Audit:
    """Read an audit that `Audit.save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(500)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "audit.json"
    >>> vc.audit(sim.y, sim.p, {"v": sim.v}).save(path)
    >>> vc.load_audit(path).rows[0].variable
    'v'
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror}",
            "give a file that audit.save() wrote",
            argument="path",
        ) from None
    except UnicodeDecodeError:
        text = ""  # not JSON, so refused below
    try:
        data = json.loads(text)
        if data["format"] > FORMAT:
            raise InputError(
                f"{str(path)!r} was written by a later varcal ({data['varcal']})",
                "update varcal",
                argument="path",
            )
        if data["format"] < FORMAT:
            raise InputError(
                f"{str(path)!r} was written by an earlier varcal ({data['varcal']})",
                "audit the rows again and save the result",
                argument="path",
            )
        return Audit.from_dict(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{str(path)!r} is not a saved audit",
            "give a file that audit.save() wrote",
            argument="path",
        ) from None
