"""A download that goes on where it was cut, for pooch's ``downloader=`` hook."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from varcal._text.progress import byte_bar
from varcal.exceptions import DownloadError

#: Answers of a server that may be better next time.
PASSING = (408, 425, 429, 500, 502, 503, 504)
#: Bytes written at a time; a cut loses the chunk that is under way.
CHUNK = 1 << 12


@dataclass(frozen=True)
class ResumingDownload:
    """Fetch one file of known checksum over HTTP, in as many pieces as the connection needs.

    What is there is kept as ``<name>.part`` beside the final name when the work ends early, an
    interrupt included, and the next call goes on from it. Bytes that turn out not to belong to
    the file are thrown away, and the whole is fetched once more.

    Parameters
    ----------
    sha256 : str
        The checksum of the whole file, in hexadecimal digits.
    attempts : int
        The most tries in a row that bring nothing new.
    wait : float
        Seconds before the second of them; doubled each time.
    timeout : float
        Seconds without an answer or a byte after which a connection counts as cut.
    way_out : str
        The hint of every error.

    Examples
    --------
    >>> ResumingDownload("e3b0c4", attempts=3)
    ResumingDownload(sha256='e3b0c4', attempts=3, wait=0.5, timeout=30.0, way_out='try again later')
    """

    sha256: str
    attempts: int = 5
    wait: float = 0.5
    timeout: float = 30.0
    way_out: str = "try again later"

    def __call__(self, url: str, output_file: str, pooch: object = None) -> None:
        """Write the file that a URL leads to.

        Parameters
        ----------
        url : str
            Where the file is.
        output_file : str
            A path of our own, in the folder of the final file.
        pooch : object
            Who calls; not used.

        Raises
        ------
        DownloadError
            If the file cannot be had, or is not the one that is wanted.
        """
        draft = Path(output_file)
        kept = draft.parent / f"{PurePosixPath(urlsplit(url).path).name}.part"
        try:
            # Renamed, not opened: of two processes only one gets the piece.
            kept.replace(draft)
        except FileNotFoundError:
            draft.write_bytes(b"")
        try:
            self._fill(url, draft)
        except BaseException:
            if draft.stat().st_size:
                draft.replace(kept)
            raise
        if (found := sha256_of(draft)) != self.sha256:
            raise DownloadError(
                f"{url} is not the file that is wanted: its sha256 is {found}, "
                f"expected {self.sha256}",
                self.way_out,
            )

    def _fill(self, url: str, draft: Path) -> None:
        """Fetch what is missing; if the pieces do not make the file, fetch all of it."""
        if draft.stat().st_size and sha256_of(draft) == self.sha256:
            return
        if self._rest(url, draft) and sha256_of(draft) != self.sha256:
            draft.write_bytes(b"")
            self._rest(url, draft)

    def _rest(self, url: str, draft: Path) -> bool:
        """Append what is missing, and tell whether the file has more than one piece."""
        import requests  # noqa: PLC0415  needed for downloads alone

        most = draft.stat().st_size
        idle, tag, pieces, stale = 0, "", int(most > 0), False
        while True:
            try:
                with requests.Session() as session:
                    begun = draft.stat().st_size
                    answer = self._ask(session, url, begun, tag)
                    with answer:
                        tag, fresh = self._check(answer, url, begun, tag)
                        pieces = 1 if fresh else pieces + 1
                        self._write(answer, draft, 0 if fresh else begun)
                return pieces > 1
            except _StaleError as error:
                draft.write_bytes(b"")
                if stale:
                    raise DownloadError(f"cannot download {url}: {error}", self.way_out) from None
                most, tag, pieces, stale, cause = 0, "", 0, True, str(error)
            except _CutError as error:
                cause = str(error)
            except requests.Timeout:
                cause = f"no answer within {self.timeout:g} s"
            except requests.exceptions.SSLError as error:
                cause = f"no secure connection to {urlsplit(url).hostname}: {error}"
            except requests.ConnectionError:
                cause = f"no connection to {urlsplit(url).hostname}"
            except requests.RequestException as error:
                cause = str(error)
            size = draft.stat().st_size
            most, idle = max(most, size), 0 if size > most else idle + 1
            if idle >= self.attempts:
                raise DownloadError(f"cannot download {url}: {cause}", self.way_out)
            time.sleep(self.wait * 2.0 ** max(idle - 1, 0))

    def _ask(self, session: Any, url: str, begun: int, tag: str) -> Any:
        # A compressed answer would count its ranges in compressed bytes.
        headers = {"Accept-Encoding": "identity"}
        if begun:
            headers["Range"] = f"bytes={begun}-"
            if tag:
                headers["If-Range"] = tag
        return session.get(url, headers=headers, stream=True, timeout=self.timeout)

    def _check(self, answer: Any, url: str, begun: int, tag: str) -> tuple[str, bool]:
        """Return the strong ETag, and whether the answer starts at the first byte."""
        status = answer.status_code
        if status in PASSING:
            raise _CutError(f"the server answered {status} {answer.reason}")
        if status == 416 and begun:
            raise _StaleError("the server has fewer bytes than are here")
        if status not in (200, 206):
            raise DownloadError(
                f"cannot download {url}: the server answered {status} {answer.reason}",
                self.way_out,
            )
        found = answer.headers.get("ETag", "")
        found = "" if found.startswith("W/") else found
        if status == 206:
            first = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
            if first != str(begun) or (tag and found != tag):
                raise _StaleError("the server sent another piece than was asked for")
        return found, status == 200

    def _write(self, answer: Any, draft: Path, begun: int) -> None:
        import requests  # noqa: PLC0415  needed for downloads alone

        length = answer.headers.get("Content-Length")
        total = None if length is None else begun + int(length)
        size = begun
        name = PurePosixPath(urlsplit(answer.url).path).name
        with draft.open("rb+") as file, byte_bar(f"downloading {name}", total) as show:
            file.truncate(begun)
            file.seek(begun)
            try:
                for chunk in answer.iter_content(CHUNK):
                    file.write(chunk)
                    size += len(chunk)
                    show(size)
            except requests.RequestException:
                raise _CutError(f"the connection was cut after {size:,} bytes") from None
        if total is not None and size < total:
            raise _CutError(f"the connection was cut after {size:,} of {total:,} bytes")


class _CutError(Exception):
    """The connection ended early; what came stays."""


class _StaleError(Exception):
    """What is here does not go with what the server has."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "empty"
    >>> path.touch()
    >>> sha256_of(path)[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
