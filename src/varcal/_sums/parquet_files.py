"""Several Parquet files read as one, with the columns that partitioned folders add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from varcal._files.source import Source, same_columns
from varcal.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ParquetFiles:
    """Files that can be read together.

    Attributes
    ----------
    sources : tuple of Source
        The files.
    schema : pyarrow.Schema
        Their columns, with types that fit all values.
    alike : bool
        Whether all files have the same columns in the same order and of the same types.
    keys : tuple of str
        The columns that folders such as ``day=3`` add.
    base : str
        Only folders below this one add columns; empty if all folders of the path do.
    """

    sources: tuple[Source, ...]
    schema: pa.Schema
    alike: bool
    keys: tuple[str, ...]
    base: str = ""

    @classmethod
    def of(
        cls, sources: Sequence[Source], base: str = "", *, partitioned: bool = True
    ) -> ParquetFiles:
        """Check that files have the same columns and compatible types.

        Parameters
        ----------
        sources : sequence of Source
            The files.
        base : str
            As the attribute.
        partitioned : bool
            Whether folders such as ``day=3`` add columns.
        """
        names = same_columns(sources)

        from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

        first, *others = (source.schema for source in sources)
        alike = all(one.names == first.names and one.types == first.types for one in others)
        schema = common_types(sources, names).remove_metadata()
        keys = _keys(sources, base, names) if partitioned else ()
        return cls(tuple(sources), schema, alike, keys, base)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.schema.names, *self.keys)

    @property
    def zones(self) -> set[str]:
        """The time zones of columns of dates."""
        return {one.tz for one in self.schema.types if getattr(one, "tz", None)}

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [str(source.path) for source in self.sources]

    @property
    def shown(self) -> str:
        """The name of the files in messages."""
        more = len(self.sources) - 1
        return self.sources[0].shown + (f" and {more:,} more" if more else "")


def _keys(sources: Sequence[Source], base: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that folders add, which must be the same for all files."""
    first = _keys_of(sources[0], base)
    for source in sources:
        own = _keys_of(source, base)
        if sorted(own) != sorted(first):
            added = [", ".join(map(repr, each)) or "no column" for each in (own, first)]
            raise InputError(
                f"the folders of {source.shown} add {added[0]}, those of {sources[0].shown} "
                f"{added[1]}",
                "pass files with the same partitions, or the files of one folder at a time",
            )
    # DuckDB treats names that differ only by case as equal.
    taken = {name.casefold(): name for name in names}
    for key in first:
        if key.casefold() in taken:
            raise InputError(
                f"a folder of {sources[0].shown} adds a column {key!r}, but there already is a "
                f"column {taken[key.casefold()]!r}",
                "rename the folders or the column, or pass pyarrow.dataset.dataset(path), which "
                "ignores the names of folders",
            )
        taken[key.casefold()] = key
    return first


def _keys_of(source: Source, base: str) -> tuple[str, ...]:
    below = source.path.parent.relative_to(base) if base else source.path.parent
    pairs = (part.partition("=") for part in Path(below).parts)
    return tuple(key for key, equals, _ in pairs if key and equals)
