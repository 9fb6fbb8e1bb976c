# SPDX-License-Identifier: Apache-2.0
"""Parquet through pyarrow. Called by the engine; columns leave through Arrow's C interface.

Files come as ``_core.StoreFile``: pyarrow reads them through the engine's store, wherever that is.

pyarrow gives the GIL back while it reads and decodes. Nothing here holds a file open between calls, and
there is no lock: a forked child can go on with what its parent had.
"""

from __future__ import annotations

from typing import Any

from .errors import DataError, Forbidden, NotFound, StorageError, Unsupported

#: What is known of a file: (its version, metadata, {leaf: {offset: row group}}).
Footer = tuple[str, Any, dict[int, dict[int, int]]]
#: Footers that are kept, by path, the latest used last.
_footers: dict[str, Footer] = {}
KEPT_FOOTERS = 64


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as e:
        raise Unsupported(
            f"Parquet is read and written through pyarrow, which cannot be imported ({e}): pip install pyarrow"
        ) from None
    return pyarrow.parquet


def _words(e: BaseException) -> str:
    return " ".join(str(e).split()) or type(e).__name__


def _translated(e: Exception) -> Exception:
    """pyarrow's errors as ours; what it calls an OSError without a number is bad data."""
    if isinstance(e, (DataError, StorageError, Unsupported, MemoryError)):
        return e
    if isinstance(e, FileNotFoundError):
        return NotFound(_words(e))
    if isinstance(e, PermissionError):
        return Forbidden(_words(e))
    if isinstance(e, NotImplementedError):
        return Unsupported(f"pyarrow: {_words(e)}")
    if isinstance(e, OSError) and e.errno:
        return StorageError(_words(e))
    return DataError(f"pyarrow: {_words(e)}")


def _opened(file: Any) -> Any:
    import pyarrow as pa

    return pa.PythonFile(file, mode="r")


def _footer(file: Any, path: str) -> Footer:
    held = _footers.pop(path, None)
    if held is None or held[0] != file.version:
        held = (file.version, _parquet().read_metadata(_opened(file)), {})
    _footers[path] = held
    while len(_footers) > KEPT_FOOTERS:
        _footers.pop(next(iter(_footers)), None)
    return held


def _offset(chunk: Any) -> int:
    """Where a column of a row group begins: at its dictionary, where it has one."""
    pages = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return dictionary if dictionary is not None and 0 < dictionary < pages else pages


def layout(file: Any, path: str, schema: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """(rows, [(offset, bytes) of each leaf]) of each row group; the types go to the ArrowSchema at ``schema``."""
    try:
        metadata = _footer(file, path)[1]
        groups = []
        for g in range(metadata.num_row_groups):
            group = metadata.row_group(g)
            chunks = [group.column(c) for c in range(group.num_columns)]
            groups.append((group.num_rows, [(_offset(c), max(0, c.total_uncompressed_size)) for c in chunks]))
        metadata.schema.to_arrow_schema()._export_to_c(schema)
        return groups
    except Exception as e:
        raise _translated(e) from None


def _row_group(footer: Footer, leaf: int, offset: int) -> int:
    _, metadata, places = footer
    if leaf not in places:
        if not 0 <= leaf < metadata.num_columns:
            raise DataError("the file has changed since it was indexed: it has no such column")
        columns = ((g, metadata.row_group(g)) for g in range(metadata.num_row_groups))
        places[leaf] = {_offset(group.column(leaf)): g for g, group in columns if group.num_rows > 0}
    if offset not in places[leaf]:
        raise DataError("the file has changed since it was indexed: no row group has this column here")
    return places[leaf][offset]


def read(file: Any, path: str, offset: int, leaf: int, rows: int, stream: int) -> None:
    """A leaf of the row group that has it at ``offset``, or its first rows, to the ArrowArrayStream at ``stream``."""
    try:
        pq = _parquet()
        footer = _footer(file, path)
        group = _row_group(footer, leaf, offset)
        # Pages one after the other where few rows are wanted, the whole column at once where all are.
        buffer_size = 65536 if rows else 0
        with pq.ParquetFile(
            _opened(file), metadata=footer[1], buffer_size=buffer_size, page_checksum_verification=True
        ) as opened:
            if rows:
                batches = opened.reader.iter_batches(rows, [group], column_indices=[leaf], use_threads=False)
                import pyarrow as pa

                first = next(iter(batches))
                table = pa.Table.from_batches([first])
            else:
                table = opened.reader.read_row_group(group, column_indices=[leaf], use_threads=False)
        table.to_reader()._export_to_c(stream)
    except Exception as e:
        raise _translated(e) from None


class FileWriter:
    """A Parquet file on its way into ``sink``, which has write(bytes)."""

    def __init__(self, schema: int, columns: list[tuple[str, bool, bool]], sink: Any) -> None:
        try:
            pq = _parquet()
            import pyarrow as pa

            self._batch = pa.RecordBatch
            self._schema = pa.Schema._import_from_c(schema)
            self._file = pa.PythonFile(sink, mode="w")
            self._writer = pq.ParquetWriter(
                self._file,
                self._schema,
                compression={leaf: "zstd" if compress else "none" for leaf, compress, _ in columns},
                use_dictionary=[leaf for leaf, _, repeats in columns if repeats],
                write_statistics=[leaf for leaf, _, repeats in columns if repeats],
                write_page_checksum=True,
            )
        except Exception as e:
            raise _translated(e) from None

    def write(self, array: int) -> None:
        """The ArrowArray at ``array``, which is taken over, becomes a row group."""
        try:
            batch = self._batch._import_from_c(array, self._schema)
            batch.validate(full=True)
            self._writer.write_batch(batch, row_group_size=max(1, batch.num_rows))
        except Exception as e:
            raise _translated(e) from None

    def finish(self) -> None:
        try:
            self._writer.close()
            self._file.close()
        except Exception as e:
            raise _translated(e) from None
