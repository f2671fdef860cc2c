"""The authors' model outputs: from a folder, or downloaded once and kept."""

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
from typing import Any

from varcal.exceptions import DownloadError, InputError, VarcalWarning
from varcal.experiments._resuming_download import ResumingDownload

#: The authors' repository, at the commit that its data were added with.
BASE_URL = (
    "https://raw.githubusercontent.com/markellekelly/variable-wise-calibration/"
    "7d6c03a4bce7bbbf3f9886df79934b5bbfd78d27/data/"
)
#: SHA-256 of each file as it is there, uncompressed.
REGISTRY = {
    "adult_out.csv": "8b03f386f0f8820a6aac7a6effb0497f0202d089750aa119ff576cc3d3a69067",
    "bank_out.csv": "793258a5d34ec27a0d518a459a48da287d7149fe73aa5249cd2808679b4a3415",
    "cardio_out.csv": "05b34cdbff03608c48f1f9732be57b3c427e0e65e7791fcaa2342ca9be96ffa1",
    "cifar_out.csv": "b6386ef2a7527234b76331d1408a93f0cc86198a5234b6280969b0402cc11bc4",
}
#: Names the folder that downloads are kept in, instead of the user's cache folder.
CACHE = "VARCAL_CACHE"


def paper_file(name: str, data: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file with the outputs of one of the paper's models.

    Parameters
    ----------
    name : {"adult", "bank", "cardio", "cifar"}
        Whose outputs.
    data : path, optional
        A folder that holds ``<name>_out.csv`` or ``<name>_out.csv.gz``. Without it the file is
        downloaded from the authors' repository, once, into the user's cache folder or the one
        that the environment variable ``VARCAL_CACHE`` names.

    Returns
    -------
    Path
        A CSV file, gzipped if its name ends in ``.gz``. One in `data` whose content has another
        checksum than the authors' is taken with a warning.

    Raises
    ------
    InputError
        If the folder does not hold the file.
    DownloadError
        If the file cannot be had.

    References
    ----------
    M. Kelly, P. Smyth (2023), Variable-based calibration for machine learning classifiers, AAAI;
    https://github.com/markellekelly/variable-wise-calibration.

    Examples
    --------
    >>> paper_file("adult", "no such folder")
    Traceback (most recent call last):
        ...
    varcal.exceptions.InputError: no folder 'no such folder', where adult_out.csv is looked for
    hint: name a folder that holds it with --data, or leave --data out to download it
    """
    return PaperFiles().path(name, data)


@dataclass(frozen=True)
class PaperFiles:
    """Where the files are, and what they must hold.

    Parameters
    ----------
    base_url : str
        What comes before the name of a file.
    registry : dict of str
        SHA-256 of the content by name of file, ``<name>_out.csv``.
    cache : path, optional
        Where downloads are kept; without it what ``VARCAL_CACHE`` names, or the user's cache.
    settings : dict
        Options of `ResumingDownload`.

    Examples
    --------
    >>> PaperFiles().names
    ('adult', 'bank', 'cardio', 'cifar')
    """

    base_url: str = BASE_URL
    registry: Mapping[str, str] = field(default_factory=lambda: dict(REGISTRY))
    cache: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The models whose outputs there are."""
        return tuple(file.removesuffix("_out.csv") for file in self.registry)

    def path(self, name: str, data: str | PathLike[str] | None = None) -> Path:
        """Return the path of one file, as `paper_file` does."""
        if name not in self.names:
            raise InputError.choice("name", name, self.names)
        file = f"{name}_out.csv"
        return self.download(file) if data is None else self.find(file, Path(data))

    def find(self, file: str, folder: Path) -> Path:
        """Return the path of a file in a folder, plain or gzipped, checked by its content."""
        way_out = "name a folder that holds it with --data, or leave --data out to download it"
        if not folder.is_dir():
            raise InputError(f"no folder {str(folder)!r}, where {file} is looked for", way_out)
        there = [path for end in (".gz", "") if (path := folder / f"{file}{end}").is_file()]
        if not there:
            raise InputError(f"neither {file} nor {file}.gz is in {str(folder)!r}", way_out)
        found = {path: content_sha256(path) for path in there}
        for path, checksum in found.items():
            if checksum == self.registry[file]:
                return path
        warnings.warn(
            f"{str(there[0])!r} is not the authors' file: the sha256 of its content is "
            f"{found[there[0]]}, expected {self.registry[file]}. Published figures may be missed",
            VarcalWarning,
            stacklevel=2,
        )
        return there[0]

    def download(self, file: str) -> Path:
        """Return the path of a file in the cache, downloaded if it is not there whole."""
        import pooch  # noqa: PLC0415  needed for downloads alone

        pooch.get_logger().setLevel("WARNING")  # our own bar says as much
        folder = self.cache or os.environ.get(CACHE) or pooch.os_cache("varcal")
        checksum = self.registry[file]
        way_out = f"get {file} by another way and name its folder with --data"
        store = pooch.create(
            path=folder, base_url=self.base_url, registry={file: f"sha256:{checksum}"}
        )
        downloader = ResumingDownload(checksum, way_out=way_out, **self.settings)
        try:
            return Path(store.fetch(file, downloader=downloader))
        except DownloadError:
            raise
        except OSError as error:
            raise DownloadError(
                f"cannot keep {file} in {str(folder)!r}: {error.strerror or error}",
                f"name a folder that you may write to in {CACHE}, or one that holds it with --data",
            ) from None


def content_sha256(path: Path) -> str:
    r"""Return the SHA-256 of what a file holds: unpacked, with lines that end in LF.

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
                f"cannot unpack {str(path)!r}: {error}", "is it whole? copy it again"
            ) from None
    # Git may have given a checkout the line ends of its system.
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
