"""The authors' model outputs: files in a folder of the user, or downloaded once and cached."""

from __future__ import annotations

import gzip
import hashlib
import os
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit

from varcal.exceptions import DownloadError, InputError, VarcalWarning, import_library

#: The authors' repository at the commit that added the data.
BASE_URL = (
    "https://raw.githubusercontent.com/markellekelly/variable-wise-calibration/"
    "7d6c03a4bce7bbbf3f9886df79934b5bbfd78d27/data/"
)
#: SHA-256 of each uncompressed file.
REGISTRY = {
    "adult_out.csv": "8b03f386f0f8820a6aac7a6effb0497f0202d089750aa119ff576cc3d3a69067",
    "bank_out.csv": "793258a5d34ec27a0d518a459a48da287d7149fe73aa5249cd2808679b4a3415",
    "cardio_out.csv": "05b34cdbff03608c48f1f9732be57b3c427e0e65e7791fcaa2342ca9be96ffa1",
    "cifar_out.csv": "b6386ef2a7527234b76331d1408a93f0cc86198a5234b6280969b0402cc11bc4",
}
#: The environment variable for a cache folder other than the user's.
CACHE = "VARCAL_CACHE"


def paper_file(name: str, data: str | PathLike[str] | None = None) -> Path:
    """Return the path of the file with the outputs of one of the paper's models.

    Parameters
    ----------
    name : {"adult", "bank", "cardio", "cifar"}
        The experiment.
    data : path, optional
        A folder that contains ``<name>_out.csv`` or ``<name>_out.csv.gz``. By default, the file
        is downloaded from the authors' repository once and kept in the user's cache folder, or
        in the folder that the environment variable ``VARCAL_CACHE`` names.

    Returns
    -------
    Path
        A CSV file, gzipped if its name ends in ``.gz``. A file in `data` whose checksum differs
        from the authors' is used with a warning.

    Raises
    ------
    InputError
        If the folder does not contain the file.
    DownloadError
        If the file cannot be downloaded or stored.
    MissingDependencyError
        If a file has to be downloaded and pooch is not installed.

    References
    ----------
    M. Kelly, P. Smyth (2023), Variable-based calibration for machine learning classifiers, AAAI;
    https://github.com/markellekelly/variable-wise-calibration.

    Examples
    --------
    >>> paper_file("adult", "no such folder")
    Traceback (most recent call last):
        ...
    varcal.exceptions.InputError: data: there is no folder 'no such folder'
    hint: give a folder that contains adult_out.csv (--data), or none to download the file
    """
    return PaperFiles().path(name, data)


@dataclass(frozen=True)
class PaperFiles:
    """Where the files are stored, and their checksums.

    Parameters
    ----------
    base_url : str
        The URL of a file without its name.
    registry : dict of str
        SHA-256 of the content by file name, ``<name>_out.csv``.
    cache : path, optional
        The folder for downloads. By default, the one that ``VARCAL_CACHE`` names, or the user's
        cache folder.
    retries : int
        How often a failed download is repeated. The pauses between attempts are 1, 2, 3, …
        seconds.
    timeout : float
        Seconds to wait for the server.

    Examples
    --------
    >>> PaperFiles().names
    ('adult', 'bank', 'cardio', 'cifar')
    """

    base_url: str = BASE_URL
    registry: Mapping[str, str] = field(default_factory=lambda: dict(REGISTRY))
    cache: Path | None = None
    retries: int = 3
    timeout: float = 30.0

    @property
    def names(self) -> tuple[str, ...]:
        """The experiments that have a file."""
        return tuple(file.removesuffix("_out.csv") for file in self.registry)

    def path(self, name: str, data: str | PathLike[str] | None = None) -> Path:
        """Return the path of one file, as `paper_file` does."""
        if name not in self.names:
            raise InputError.choice("name", name, self.names)
        file = f"{name}_out.csv"
        return self.download(file) if data is None else self.find(file, Path(data))

    def find(self, file: str, folder: Path) -> Path:
        """Return the path of a file in a folder, plain or gzipped, after checking its content."""
        hint = f"give a folder that contains {file} (--data), or none to download the file"
        if not folder.is_dir():
            raise InputError(f"data: there is no folder {str(folder)!r}", hint)
        there = [path for end in (".gz", "") if (path := folder / f"{file}{end}").is_file()]
        if not there:
            raise InputError(f"data: {str(folder)!r} has neither {file} nor {file}.gz", hint)
        checksums = {path: content_sha256(path) for path in there}
        for path, checksum in checksums.items():
            if checksum == self.registry[file]:
                return path
        warnings.warn(
            f"{str(there[0])!r} is not the authors' file: the sha256 of its content is "
            f"{checksums[there[0]]}, expected {self.registry[file]}. Results may differ from the "
            "published figures",
            VarcalWarning,
            stacklevel=2,
        )
        return there[0]

    def download(self, file: str) -> Path:
        """Return the path of a file in the cache, downloading it if it is missing or damaged."""
        pooch = import_library("pooch", f"downloading {file}")
        from requests import RequestException  # noqa: PLC0415  pooch depends on requests

        pooch.get_logger().setLevel("WARNING")  # the command line reports progress itself
        folder = self.cache or os.environ.get(CACHE) or pooch.os_cache("varcal")
        store = pooch.create(
            path=folder,
            base_url=self.base_url,
            registry={file: f"sha256:{self.registry[file]}"},
            retry_if_failed=self.retries,
        )
        url = self.base_url + file
        hint = f"get {file} in another way and give its folder as data (--data)"
        try:
            return Path(store.fetch(file, downloader=pooch.HTTPDownloader(timeout=self.timeout)))
        except RequestException as error:
            reason = _reason(error, url, self.timeout)
            raise DownloadError(f"cannot download {url}: {reason}", hint) from None
        except ValueError:
            raise DownloadError(
                f"{url} is not the expected file: its sha256 is not {self.registry[file]}", hint
            ) from None
        except OSError as error:
            raise DownloadError(
                f"cannot store {file} in {str(folder)!r}: {error.strerror or error}",
                f"set {CACHE} to a folder that you may write to, or give a folder that contains "
                f"{file} as data (--data)",
            ) from None


def _reason(error: Exception, url: str, timeout: float) -> str:
    """Say in a few words why a request failed."""
    import requests  # noqa: PLC0415  loaded with pooch

    host = urlsplit(url).hostname
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {timeout:g} s"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection to {host}: {error}"
    if isinstance(error, requests.ConnectionError):
        return f"no connection to {host}, or it was interrupted"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection was interrupted"
    return str(error)


def content_sha256(path: Path) -> str:
    r"""Return the SHA-256 of a file's content: unzipped, with LF at the ends of lines.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv.gz"
    >>> _ = path.write_bytes(gzip.compress(b"a\r\n"))
    >>> content_sha256(path) == hashlib.sha256(b"a\n").hexdigest()
    True
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"cannot unzip {str(path)!r}: {error}", "the file may be incomplete: copy it again"
            ) from None
    # A checkout by git may have CRLF.
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
