# SPDX-License-Identifier: Apache-2.0
"""Pictures that only Pillow opens: TIFF, BMP, GIF and the like. Called by the engine, under the GIL."""

from __future__ import annotations

import io
from typing import Any

from .errors import DataError, Unsupported
from .messages import tell_once

#: Kinds that Pillow does not open by itself, and what to do.
PLUGINS = {"HEIC": "pip install pillow-heif, and register it", "JPEG XL": "pip install pillow-jxl-plugin, and import it"}


def open(data: bytes, kind: str, orient: bool) -> Any:
    """The picture, its header read; of an animation or a stack the first frame."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise Unsupported(
            f"a {kind} picture: headrace reads these through Pillow, which is not installed (pip install pillow)"
        ) from None
    try:
        image = Image.open(io.BytesIO(data))
        tell_once(
            f"{kind} pictures are decoded by Pillow, one at a time under the GIL, which is slow; "
            "JPEG, PNG and WebP are decoded by headrace's threads"
        )
        return ImageOps.exif_transpose(image) if orient else image
    except MemoryError:
        raise
    except Image.UnidentifiedImageError:
        if kind in PLUGINS:
            raise Unsupported(f"a {kind} picture: Pillow reads these with a plugin alone ({PLUGINS[kind]})") from None
        raise DataError(f"{kind}: Pillow cannot identify the picture") from None
    except Exception as e:  # Pillow's plugins raise whatever they meet
        raise DataError(f"{kind}: {_words(e)}") from None


def pixels(image: Any, mode: str, x: int, y: int, width: int, height: int) -> bytes:
    """A part of the picture as ``mode``, row by row."""
    try:
        if mode != "P" and (image.mode in ("I", "F") or image.mode.startswith("I;16")):
            tell_once(
                f"{image.format} pictures with more than 8 bits a pixel ({image.mode}): levels above 255 become 255, as in Pillow; "
                "to keep them, save the numbers as .npy and read them with hr.array"
            )
        image = _numbers(image) if mode == "P" else image.convert(mode)
        return image.crop((x, y, x + width, y + height)).tobytes()
    except DataError:
        raise
    except MemoryError:
        raise
    except Exception as e:
        raise DataError(f"{image.format or 'picture'}: {_words(e)}") from None


def _numbers(image: Any) -> Any:
    """What is stored, one u8 a pixel: indices into a palette, or gray values."""
    if image.mode == "1":
        return image.convert("L").point(lambda v: v & 1)
    if image.mode in ("L", "P"):
        return image
    raise DataError(f"{image.format}: {image.mode} pixels, where mode 'P' takes one number of 8 bits a pixel")


def _words(e: Exception) -> str:
    return " ".join(str(e).split()) or type(e).__name__
