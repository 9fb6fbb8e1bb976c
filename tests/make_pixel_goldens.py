# SPDX-License-Identifier: Apache-2.0
"""Writes what Pillow makes of small pictures into headers that the C++ tests compare with.

.venv/bin/python tests/make_pixel_goldens.py
"""

from __future__ import annotations

import io
import pathlib

import numpy as np
import PIL
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Made by tests/make_pixel_goldens.py with Pillow {version}: {what}.
// clang-format off
#pragma once

#include <cstdint>

namespace headrace::golden {{

"""


def array(name: str, data: bytes | np.ndarray) -> str:
    values = list(data if isinstance(data, bytes) else data.ravel())
    lines = [",".join(str(int(v)) for v in values[i : i + 32]) for i in range(0, len(values), 32)]
    return f"inline constexpr uint8_t {name}[] = {{\n" + ",\n".join(lines) + "};\n\n"


def jpeg(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def write(path: str, what: str, body: str) -> None:
    text = HEAD.format(version=PIL.__version__, what=what) + body + "}  // namespace headrace::golden\n"
    (ROOT / path).write_text(text)


def codec_goldens() -> None:
    rng = np.random.default_rng(1)
    smooth = np.linspace(0, 255, 24 * 16 * 4).reshape(16, 24, 4)
    pixels = np.clip(smooth[:, :, ::-1] + rng.integers(-60, 60, (16, 24, 4)), 0, 255).astype(np.uint8)
    colour = jpeg(Image.fromarray(pixels[:, :, :3]), quality=90)
    gray = jpeg(Image.fromarray(pixels[:, :, 0]), quality=90)
    cmyk = jpeg(Image.fromarray(pixels, "CMYK"), quality=90)

    def read(data: bytes, mode: str) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(data)).convert(mode))

    body = array("kColourJpeg", colour) + array("kColourAsGray", read(colour, "L"))
    body += array("kGrayJpeg", gray) + array("kGrayAsColour", read(gray, "RGB"))
    body += array("kCmykJpeg", cmyk) + array("kCmykAsColour", read(cmyk, "RGB"))
    write("src/codec/jpeg_golden.h", "JPEGs and what convert() gives", body)


# source size, box (x, y, w, h), size, filter; chosen for one pass or two, either order, and edges
CASES = [
    ((40, 30), (0, 0, 40, 30), (16, 16), "bilinear"),
    ((40, 30), (5, 3, 20, 25), (24, 8), "bilinear"),
    ((40, 30), (5, 3, 20, 25), (24, 8), "bicubic"),
    ((40, 30), (1, 2, 37, 11), (9, 33), "bicubic"),
    ((40, 30), (7, 7, 3, 2), (31, 17), "bilinear"),
    ((40, 30), (0, 0, 40, 30), (40, 11), "bilinear"),
    ((40, 30), (0, 0, 40, 30), (13, 30), "bicubic"),
    ((40, 30), (39, 29, 1, 1), (5, 5), "bicubic"),
    ((40, 30), (0, 0, 40, 30), (1, 1), "bilinear"),
    ((40, 30), (3, 4, 30, 20), (45, 7), "nearest"),
]


def resample_goldens() -> None:
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    pixels[8:20, 10:30] = (pixels[8:20, 10:30] > 127) * 255  # where bicubic overshoots
    image = Image.fromarray(pixels)
    body = array("kSource", pixels)
    rows = ""
    for i, (_, (x, y, w, h), size, name) in enumerate(CASES):
        result = image.crop((x, y, x + w, y + h)).resize(size, Image.Resampling[name.upper()])
        body += array(f"kResult{i}", np.asarray(result))
        rows += f'    {{{{{x}, {y}, {w}, {h}}}, {{{size[0]}, {size[1]}}}, "{name}", kResult{i}}},\n'
    body += "struct Resampled {\n  int box[4];\n  int size[2];\n  const char* filter;\n  const uint8_t* pixels;\n};\n"
    body += "inline constexpr int kSourceSize[2] = {40, 30};\n"
    body += "inline constexpr Resampled kResampled[] = {\n" + rows + "};\n\n"
    write("src/transform/kernels/resample_golden.h", "crop(box).resize(size, filter) of RGB noise", body)


if __name__ == "__main__":
    codec_goldens()
    resample_goldens()
