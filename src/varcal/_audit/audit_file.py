"""Saved audits, read back."""

from __future__ import annotations

from os import PathLike

from varcal._audit.audit_result import AUDIT, Audit
from varcal._options import checked, or_none
from varcal._saved.document import check_key


@checked(key=or_none(check_key))
def load_audit(path: str | PathLike[str], *, key: str | bytes | None = None) -> Audit:
    """Read an audit that `Audit.save` wrote.

    Parameters
    ----------
    path : path
        The file.
    key : str or bytes, optional
        The key that the file was signed with; a file that is not signed with it is refused.

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
    return AUDIT.load(path, key, Audit.from_dict)
