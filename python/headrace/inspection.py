# SPDX-License-Identifier: Apache-2.0
"""``headrace inspect``: what a data set is, as plain data and as a page on the screen."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

import headrace as hr

from . import terminal
from .arrays.inspect import arrays_page, look_at_arrays
from .notebook import spread

_PICTURES = ("jpeg", "png", "webp", "gif", "bmp", "tiff")
_BEGINS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_PROBED = 8  # samples that tell whether bytes are pictures
_PREVIEW = 100  # characters of a text that are shown
_NAMES = 8  # shards and classes that are named


def picture_fields(dataset: hr.Dataset) -> list[str]:
    """Those of pictures: by their kind, by their name, and where all of a few values begin as pictures do (``image`` of a pack)."""
    known = {f["name"]: f for f in dataset._source.fields}
    sure = {n for n, f in known.items() if f["kind"] in _PICTURES or f["picture"]}
    unsure = [n for n, f in known.items() if f["kind"] == "bytes" and n not in sure]
    read = []
    for i in spread(len(dataset), _PROBED) if unsure else ():
        try:
            read.append(dataset[i])
        except hr.Error:  # verify reads it again, and names it
            continue
    sure.update(n for n in unsure if _begin_as_pictures([s[n] for s in read if n in s]))
    return [n for n in known if n in sure]


def _begin_as_pictures(values: Sequence[Any]) -> bool:
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return bool(flat) and all(_begins_as_picture(v) for v in flat)


def _begins_as_picture(value: bytes) -> bool:
    is_webp = value[:4] == b"RIFF" and value[8:12] == b"WEBP"
    is_bmp = value[:2] == b"BM" and value[6:10] == bytes(4)
    return value.startswith(_BEGINS) or is_webp or is_bmp


def _length(value: Any) -> int | None:
    if isinstance(value, list):
        lengths = [_length(v) for v in value]
        return None if None in lengths else sum(n for n in lengths if n is not None)
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, np.ndarray):
        return value.nbytes
    return len(value) if isinstance(value, bytes) else None


def _shapes(values: list[Any]) -> str:
    """ "uint16 (300,), uint16 (600,)": types and shapes of arrays, the first few."""
    arrays = [v for value in values for v in (value if isinstance(value, list) else [value]) if isinstance(v, np.ndarray)]
    found = list(dict.fromkeys(f"{v.dtype} {tuple(v.shape)}" for v in arrays))
    return ", ".join(found[:2]) + (f" and {len(found) - 2} more" if len(found) > 2 else "")


def _distribution(numbers: Sequence[float]) -> dict[str, Any]:
    return {"min": min(numbers), "median": statistics.median_low(numbers), "max": max(numbers), "of": len(numbers)}


def _pictures(pictures: hr.Dataset, name: str, numbers: list[int]) -> dict[str, Any]:
    """Widths and heights of a few pictures, and what is wrong with the others."""
    out: dict[str, Any] = {}
    sizes, errors = [], []
    for i in numbers:
        try:
            value = pictures[i][name]
            sizes += [v.shape[:2] for v in (value if isinstance(value, list) else [value])]
        except hr.Error as e:
            errors.append(str(e))
    if sizes:
        out = {"width": _distribution([w for _, w in sizes]), "height": _distribution([h for h, _ in sizes])}
    if errors:
        out.update(bad=len(errors), error=errors[0])
    return out


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"values": len(value), "size": _length(value)}
    if isinstance(value, str):
        short = value if len(value) <= _PREVIEW else value[:_PREVIEW] + "…"
        return {"size": _length(value), "text": short.encode("utf-8", "replace").decode()}
    if isinstance(value, bytes):
        return {"size": len(value)}
    if hasattr(value, "shape") and value.shape:
        return {"shape": list(value.shape), "dtype": str(value.dtype)}
    return {"value": value}


def look(url: list[str], *, root: str | None, index: str | None, number: int, samples: int) -> dict[str, Any]:
    """Everything ``inspect`` says, as data that JSON can hold. Reads `samples` samples, and `number`."""
    dataset = hr.open(url, root=root, index=index)
    if not -len(dataset) <= number < len(dataset):
        raise hr.UsageError(f"there is no sample {number}: the data set has {len(dataset)}")
    number %= len(dataset)
    source = dataset._source
    picked = spread(len(dataset), samples)
    read = [dataset[i] for i in picked]
    named = picture_fields(dataset)
    fields = []
    for about in source.fields:
        name, kind = about["name"], about["kind"]
        values = [s[name] for s in read if name in s]
        field: dict[str, Any] = {**about, "present": len(values), "of": len(read)}
        several = any(isinstance(v, list) for v in values)
        lengths = [n for v in values if (n := _length(v)) is not None]
        numbers = [v for v in values if isinstance(v, (int, float))]
        if lengths:
            field["bytes"] = _distribution(lengths)
        if numbers:
            field["numbers"] = _distribution(numbers)
        if kind == "npy":  # what the schema does not say
            field["shapes"] = _shapes(values)
        if name in named:
            there = [i for i, s in zip(picked, read) if name in s]
            pictures = hr.open(url, {name: hr.image(name, many=several).layout("NHWC")}, root=root, index=index)
            field["pictures"] = _pictures(pictures, name, there[:16])
            field["sample"] = _pictures(pictures, name, [number]) if name in dataset[number] else None
        fields.append(field)
    shards = [{"name": name, "bytes": size, "samples": n} for name, size, n in source.shards]
    known = sum(s["bytes"] for s in shards)
    mean = statistics.fmean(sum(_length(v) or 0 for v in s.values()) for s in read)
    chosen = dataset[number]
    return {
        "url": url,
        "format": dataset.format,
        "samples": len(dataset),
        "bytes": known or int(mean * len(dataset)),
        "bytes_estimated": known == 0,  # plain files: the index does not know their sizes
        "blocks": source.blocks,
        "fingerprint": dataset.fingerprint,
        "classes": source.classes,
        "notices": dataset.notices,
        "fields": fields,
        "arrays": look_at_arrays(url),
        "shards": shards if known else [],
        "sample": {"number": number, "key": dataset.key(number), "values": {k: _value(v) for k, v in chosen.items()}},
    }


def _range(d: dict[str, Any], show: Any = str) -> str:
    if d["min"] == d["max"]:
        return str(show(d["min"]))
    return f"{show(d['min'])} … {show(d['median'])} … {show(d['max'])}"


def _type(field: dict[str, Any]) -> str:
    """ "jpeg", "int u8", "array f32 [?,3], several"."""
    words = " ".join(w for w in (field["kind"], field["dtype"]) if w)
    if field["shape"] is not None:
        words += f" [{','.join('?' if n is None else str(n) for n in field['shape'])}]"
    return words + (", several" if field["many"] else "")


def _content(field: dict[str, Any]) -> str:
    """What a field's values are like, in a few words."""
    if "numbers" in field:
        return _range(field["numbers"])
    if field["kind"] == "npy":
        return str(field.get("shapes", ""))
    pictures = field.get("pictures", {})
    words = f"{_range(pictures['width'])} x {_range(pictures['height'])} pixels" if "width" in pictures else ""
    if "error" in pictures:
        words += f"{'; ' if words else ''}{pictures['bad']} cannot be decoded: {pictures['error']}"
    return words


def _first(names: list[str]) -> str:
    if len(names) <= _NAMES:
        return ", ".join(names)
    return ", ".join(names[: _NAMES - 1]) + f", … {names[-1]}"


def _shards_line(shards: list[dict[str, Any]]) -> str:
    names = [s["name"] for s in shards]
    words = f"{len(shards):,}: {names[0]}" + (f" … {names[-1]}" if len(names) > 1 else "")
    sizes, counts = _distribution([s["bytes"] for s in shards]), _distribution([s["samples"] for s in shards])
    return f"{words}; {_range(counts, '{:,}'.format)} samples and {_range(sizes, terminal.size)} each"


def _shown(name: str, value: dict[str, Any], fields: list[dict[str, Any]]) -> str:
    dims = next((f.get("sample") for f in fields if f["name"] == name), None)
    size = terminal.size(value["size"]) if value.get("size") is not None else ""
    if "values" in value:
        size = terminal.count(value["values"], "value") + (f", {size}" if size else "")
    if dims and "width" in dims:
        return f"{size}, {_range(dims['width'])} x {_range(dims['height'])} pixels"
    if dims:
        return f"{size}, cannot be decoded"
    if "text" in value:
        return f"{size}: {value['text']}"
    if "values" in value:
        return size
    if "shape" in value:
        return f"{value['dtype']} {tuple(value['shape'])}"
    return str(value["value"]) if "value" in value else size


def page(facts: dict[str, Any]) -> None:
    """The same on the screen."""
    out = terminal.console()
    head = terminal.facts()
    about = "about " if facts["bytes_estimated"] else ""
    head.add_row("format", facts["format"])
    head.add_row("samples", f"{facts['samples']:,}")
    head.add_row("size", f"{about}{terminal.size(facts['bytes'])}" + (" (from the samples read here)" if about else ""))
    if facts["shards"]:
        head.add_row("shards", terminal.plain(_shards_line(facts["shards"])))
    head.add_row("blocks", f'{facts["blocks"]:,} (runs of samples that shuffle="pool" moves as a whole)')
    if facts["classes"]:
        head.add_row("classes", terminal.plain(f"{len(facts['classes']):,}: {_first(facts['classes'])}"))
    head.add_row("fingerprint", facts["fingerprint"])
    for notice in facts["notices"]:
        head.add_row("notice", terminal.plain(notice))
    out.print(head)
    out.print()
    if facts["arrays"]:
        arrays_page(facts["arrays"])

    rows = terminal.table("field", "kind", "bytes", "content", ">found in")
    for f in facts["fields"]:
        sizes = _range(f["bytes"], terminal.size) if "bytes" in f else "in the index" if f["in_index"] else ""
        rows.add_row(
            terminal.plain(f["name"]),
            terminal.plain(_type(f)),
            sizes,
            terminal.plain(_content(f)),
            f"{f['present']} of {f['of']}",
        )
    out.print(rows)
    out.print(f"[dim]least … median … most of {terminal.count(facts['fields'][0]['of'], 'sample')} read[/]\n")

    one = facts["sample"]
    sample = terminal.facts()
    sample.add_row("sample", f"{one['number']:,}")
    sample.add_row("key", terminal.plain(one["key"]))
    for name, value in one["values"].items():
        sample.add_row(terminal.plain(name), terminal.plain(_shown(name, value, facts["fields"])))
    out.print(sample)
