# SPDX-License-Identifier: Apache-2.0
"""Where a data set lies, as a user says it: paths, globs, lists of them, and how tables are to be read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .checks import checked_bool
from .errors import UsageError

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".csv.zst", ".tsv.zst", ".jsonl.zst")


#: What pathlib.Path makes of "s3://bucket/key".
_CUT_URL = re.compile(r"(s3:|gs:|hf:|https?:)/(?!/)")


def encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def places_of(source: Any) -> Any:
    """``urls_of`` a path; of an xarray Dataset where its variables lie."""
    if "xarray" in sys.modules:  # whoever has a Dataset has imported it; what reads them takes long to import
        from .arrays.xarray import is_xarray, trace

        if is_xarray(source):
            return trace(source)
    return urls_of(source)


def _at_home(path: Any) -> Any:
    """``~/data`` as a shell has it, unless there is a folder of that name."""
    is_home = isinstance(path, str) and path.startswith("~") and not os.path.lexists(path.partition("/")[0])
    return os.path.expanduser(path) if is_home else path


def urls_of(source: Any) -> list[str]:
    """A path, a glob, braces, or a list or generator of them."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and type(source) in (set, frozenset)):
        source = sorted(source) if isinstance(source, (set, frozenset)) else list(source)
    if isinstance(source, Sequence) and source and all(isinstance(s, (str, os.PathLike)) for s in source):
        urls = [_at_home(os.fspath(s)) for s in source]
        for url in urls:
            if not isinstance(url, str) or not url or "\0" in url or not encodes(url):
                raise UsageError(f"a source is a path, not {url!r}")
            if (cut := _CUT_URL.match(url)) and not os.path.lexists(cut[1]):
                whole = f"{cut[1]}//{url[cut.end() :]}".partition("?")[0]
                raise UsageError(f"pathlib takes a '/' away from URLs: give {whole!r} as a text")
        return urls
    if type(source).__module__.startswith("xarray."):
        raise UsageError(
            "an xarray Dataset is taken by hr.open and hr.Loader; here hr.open(ds) or the path of its files is wanted"
        )
    from .habits import refuse_source

    refuse_source(source)
    raise UsageError(f"a source is a path, a glob, a list of them, or a data set; got {source!r}")


def as_list(url: str) -> str:
    """A root is what paths are relative to: the rows name files."""
    name, _, part = url.rpartition("#") if "#" in url and not os.path.exists(url) else (url, "", "")
    if not name.lower().endswith(_TABLES) or "table=" in part:
        return url
    return f"{name}#{part}&table=no" if part else f"{name}#table=no"


def reading(urls: Any, header: Any, separator: Any, table: Any) -> Any:
    """Paths with what was said of how their tables are to be read."""
    if header is None and separator is None and table is None:
        return urls
    from urllib.parse import quote

    words = []
    if header is not None:
        if isinstance(header, bool):
            words.append(f"header={'yes' if header else 'no'}")
        elif isinstance(header, Sequence) and not isinstance(header, str) and header and all(isinstance(n, str) for n in header):
            words.append("header=" + ",".join(quote(n, safe="") for n in header))
        else:
            raise UsageError(f"header is True, False, or the names of the columns, not {header!r}")
    if separator is not None:
        if not isinstance(separator, str) or len(separator.encode()) != 1:
            raise UsageError(f"separator is one character, like ';' or '\\t', not {separator!r}")
        words.append("separator=" + quote(separator, safe=""))
    if table is not None:
        words.append(f"table={'yes' if checked_bool(table, 'table') else 'no'}")
    if not isinstance(urls, list):
        raise UsageError("header, separator and table are for CSV, TSV and JSON lines")
    return [f"{url}#{'&'.join(words)}" for url in urls]
