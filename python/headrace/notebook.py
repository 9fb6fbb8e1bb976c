# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of data sets and batches, and a sheet of many pictures as one file.

The HTML stands by itself: pictures are inline and small, texts are escaped, and its size has a bound (eight pictures of
96 pixels, forty fields). Pictures are decoded, made smaller and encoded by headrace.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _core
from .errors import Error, UsageError

_SHOWN = 8  # pictures
_SIDE = 96  # pixels of a thumbnail's longer side
_ROWS = 40  # fields
_TEXT = 60  # characters of a text
_KINDS = {"jpg": "jpeg", "jpeg": "jpeg", "png": "png", "webp": "webp"}


def spread(n: int, wanted: int) -> list[int]:
    """``wanted`` numbers out of 0 … n-1, evenly spaced, the first and the last among them."""
    if n <= wanted:
        return list(range(n))
    return [i * (n - 1) // (wanted - 1) for i in range(wanted)] if wanted > 1 else [0]


def _numpy(value: Any) -> Any:
    """A tensor of any library as a NumPy array; None for what is none."""
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) in ("torch.bfloat16", "torch.float16") else value
        return value.numpy()
    try:
        return np.asarray(value) if hasattr(value, "shape") and hasattr(value, "dtype") else None
    except Exception:  # an array of a library that cannot say what it holds
        return None


def _pixels(picture: Any) -> Any:
    """[h, w, c] of u8, or None: of an array in either layout; numbers that are no levels are stretched to 0 … 255."""
    a = _numpy(picture)
    if a is None or a.dtype.kind not in "uif":
        return None
    if a.ndim == 2:
        a = a[:, :, None]
    if a.ndim != 3 or 0 in a.shape:
        return None
    if a.shape[0] in (1, 3, 4) and a.shape[2] not in (1, 3, 4):
        a = np.moveaxis(a, 0, 2)
    if a.shape[2] not in (1, 3, 4) or min(a.shape[:2]) < 2:
        return None
    if a.dtype != np.uint8:
        a = np.nan_to_num(a.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = float(a.min()), float(a.max())
        a = ((a - low) * (255.0 / (high - low) if high > low else 0.0)).astype(np.uint8)
    return np.ascontiguousarray(a)


def small(picture: Any, side: int) -> Any:
    """[h, w, c] of u8, the longer side at most ``side``: of the bytes of a picture, or of pixels. None: no picture."""
    if not isinstance(picture, bytes):
        pixels = _pixels(picture)
        if pixels is None or max(pixels.shape[:2]) <= side:
            return pixels
        picture = _core.encode_picture(pixels, "png", 90)
    raw: Any = _core.shrunk_picture(picture, side)
    return np.load(io.BytesIO(raw))


def thumbnail(picture: Any) -> str:
    """An ``<img>`` with the picture in it; words where there is none."""
    try:
        pixels = small(picture, _SIDE)
        if pixels is None:
            return "<i>no picture</i>"
        kind = "png" if pixels.shape[2] == 4 else "jpeg"
        data: Any = _core.encode_picture(np.ascontiguousarray(pixels), kind, 80)
    except Error as e:
        return f"<i>{text_of(e)}</i>"
    return f'<img src="data:image/{kind};base64,{base64.b64encode(data).decode()}" style="max-width:{_SIDE}px">'


def text_of(value: Any, most: int = _TEXT) -> str:
    """Short, and safe within HTML."""
    words = " ".join(str(value).split())
    return html.escape(words if len(words) <= most else words[: most - 1] + "…")


def _table(heads: Iterable[str], rows: list[list[str]]) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{c}</{tag}>' for c in cells) + "</tr>"

    more = f"<p>… and {len(rows) - _ROWS} more</p>" if len(rows) > _ROWS else ""
    return "<table>" + line(heads, "th") + "".join(line(r, "td") for r in rows[:_ROWS]) + "</table>" + more


def _strip(pictures: list[tuple[str, str]]) -> str:
    """Pictures side by side, each with words below."""
    if not pictures:
        return ""
    cell = '<div style="display:inline-block;margin:4px;text-align:center;vertical-align:top;font-size:small">{}<br>{}</div>'
    return "<div>" + "".join(cell.format(*p) for p in pictures) + "</div>"


def _caption(dataset: Any, i: int, sample: dict[str, Any], classes: list[str]) -> str:
    words = [text_of(dataset.key(i))]
    for name in ("cls", "label", "labels"):
        value = sample.get(name)
        if isinstance(value, (int, np.integer)) and 0 <= value < len(classes):
            words.append(text_of(classes[int(value)]))
        elif isinstance(value, (int, float, str, np.number)):
            words.append(f"{html.escape(name)} {text_of(value)}")
    return "<br>".join(words[:2])


def dataset_html(dataset: Any) -> str:
    """Counts, fields, and a few of the pictures."""
    known = {f["name"]: f for f in dataset._source.fields if ";" not in f["name"]}
    classes = dataset.classes
    title = f"<b>headrace data set</b>: {len(dataset):,} samples, {text_of(dataset.format)}"
    if classes:
        title += f", {len(classes):,} classes"
    outputs = dataset._fields or {}
    rows = [[text_of(n), html.escape(str(f["kind"])), ""] for n, f in known.items()]
    rows += [[text_of(n), "", text_of(repr(f), 300)] for n, f in outputs.items()]
    stored = [n for n, f in known.items() if f["picture"] or f["kind"] in ("jpeg", "png", "webp")]
    pictures = [n for n, f in outputs.items() if getattr(f, "what", "") == "image"] if outputs else stored
    shown: list[tuple[str, str]] = []
    for i in spread(len(dataset), _SHOWN) if pictures else ():
        try:
            sample = dataset[i]
        except Error as e:
            shown.append((f"<i>{text_of(e)}</i>", text_of(dataset.key(i))))
            continue
        value = next((sample[n] for n in pictures if n in sample), None)
        if isinstance(value, list):
            value = value[0] if value else None
        shown.append((thumbnail(value), _caption(dataset, i, sample, classes)))
    return f"<div><p>{title}</p>{_table(['field', 'kind', 'made'], rows)}{_strip(shown)}</div>"


def _what(value: Any) -> tuple[str, str]:
    """Type and shape of a value of a batch."""
    if isinstance(value, tuple):
        parts = [_what(v) for v in value]
        return f"tuple of {len(value)}", ", ".join(shape for _, shape in parts)
    if isinstance(value, list):
        kind = type(value[0]).__name__ if value else ""
        return f"list of {kind}" if kind else "list", f"{len(value)}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__}, {value.dtype}", str(tuple(value.shape))
    return type(value).__name__, text_of(value)


def _pictures_of(value: Any) -> list[Any]:
    """The first few pictures of a value of a batch; none where it holds no pictures."""
    if isinstance(value, tuple) and value:
        value = value[0]  # padded
    if isinstance(value, list):
        return [v for v in value[:_SHOWN] if _pixels(v) is not None]
    if getattr(value, "ndim", 0) == 4:
        return [v for v in value[:_SHOWN] if _pixels(v) is not None]
    return []


def batch_html(batch: Any) -> str:
    """Names, types, shapes, and the first pictures."""
    rows: list[list[str]] = []
    strips: list[str] = []
    for name, value in batch.items():
        kind, shape = _what(value)
        rows.append([text_of(name), html.escape(kind), html.escape(shape)])
        pictures = _pictures_of(value)
        if pictures and len(strips) < 2:
            strips.append(f"<p>{text_of(name)}</p>" + _strip([(thumbnail(p), "") for p in pictures]))
    return f"<div><p><b>headrace batch</b></p>{_table(['name', 'type', 'shape'], rows)}{''.join(strips)}</div>"


def contact_sheet(dataset: Any, count: int = 64, cell: int = 128) -> Any:
    """Pictures of a data set, evenly spaced over it, in a square of cells: u8 [h, w, 3]. Those that cannot be decoded are red."""
    known = dataset._source.fields
    names = [f["name"] for f in known if f["picture"] or f["kind"] in ("jpeg", "png", "webp")]
    if not names:
        raise UsageError("the data set has no pictures: " + ", ".join(f["name"] for f in known))
    numbers = spread(len(dataset), count)
    across = int(np.ceil(np.sqrt(len(numbers))))
    down = -(-len(numbers) // across)
    sheet = np.full((down * cell, across * cell, 3), 255, np.uint8)
    for place, i in enumerate(numbers):
        y, x = place // across * cell, place % across * cell
        try:
            sample = dataset[i]
            value = next((sample[n] for n in names if n in sample), None)
            pixels = small(value[0] if isinstance(value, list) and value else value, cell - 4)
        except Error:
            sheet[y + 2 : y + cell - 2, x + 2 : x + cell - 2] = (200, 40, 40)
            continue
        if pixels is None:
            continue
        h, w = pixels.shape[:2]
        top, left = y + (cell - h) // 2, x + (cell - w) // 2
        sheet[top : top + h, left : left + w] = pixels[:, :, :3]
    return sheet


def write_contact_sheet(dataset: Any, path: str, count: int = 64, cell: int = 128) -> None:
    """``contact_sheet`` as a JPEG, PNG or WebP, by the name of the file."""
    kind = _KINDS.get(path.rpartition(".")[2].lower())
    if kind is None:
        raise UsageError(f"a contact sheet is a picture: name it sheet.jpg, .png or .webp, not {path!r}")
    data: Any = _core.encode_picture(contact_sheet(dataset, count, cell), kind, 88)
    with open(path, "wb") as f:
        f.write(data)
