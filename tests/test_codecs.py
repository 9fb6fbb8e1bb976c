# SPDX-License-Identifier: Apache-2.0
"""PNG, WebP, JPEG and what Pillow opens, against Pillow: pixels, crops, modes, turns, encoders."""

from __future__ import annotations

import io
import pathlib
import random
import struct
import subprocess
import sys
import zlib
from typing import Any

import headrace as hr
import numpy as np
import pixels
import pytest
from headrace import photos
from PIL import Image, ImageOps
from support import write_tar

MODES = ("L", "RGB", "RGBA")
SIZES = [(1, 1), (2, 3), (5, 3), (16, 16), (33, 17), (64, 7), (97, 61), (130, 200)]


def make_picture(seed: int, size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    """A photo with, where the mode has it, an alpha of every level and a hole."""
    rgb = Image.fromarray(photos.make_pixels(seed, size))
    if mode not in ("RGBA", "LA"):
        return rgb.convert(mode)
    rng = np.random.default_rng(seed)
    alpha = rng.integers(0, 256, (size[1], size[0]), dtype=np.uint8)
    alpha[: size[1] // 3] = 255
    alpha[-(size[1] // 4) :, : size[0] // 2] = 0
    out = rgb.convert("RGBA" if mode == "RGBA" else "LA")
    out.putalpha(Image.fromarray(alpha))
    return out


def save(image: Image.Image, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def by_pillow(data: bytes, mode: str) -> np.ndarray:
    image = Image.open(io.BytesIO(data)).convert(mode)
    return np.asarray(image).reshape(image.size[1], image.size[0], -1)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def make_png(
    width: int, height: int, depth: int, colour: int, rows: list[bytes], before: bytes = b"", interlace: int = 0
) -> bytes:
    """By hand: Pillow writes neither 16-bit colours nor interlaced pictures."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def packed(samples: np.ndarray, depth: int) -> list[bytes]:
    """Rows of samples as PNG stores them."""
    if depth >= 8:
        return [row.astype(">u2" if depth == 16 else "u1").tobytes() for row in samples]
    bits = np.unpackbits(samples.astype(np.uint8)[..., None], axis=-1)[..., 8 - depth :]
    return [np.packbits(row).tobytes() for row in bits.reshape(len(samples), -1)]


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def interlaced(samples: np.ndarray, depth: int) -> list[bytes]:
    passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
    return [row for part in passes if part.size for row in packed(part, depth)]


def png_kinds() -> dict[str, tuple[int, int, int]]:
    """name: depth, colour type, samples per pixel"""
    out = {}
    for name, colour, channels, depths in (
        ("gray", 0, 1, (1, 2, 4, 8, 16)),
        ("colour", 2, 3, (8, 16)),
        ("palette", 3, 1, (1, 2, 4, 8)),
        ("gray with alpha", 4, 2, (8, 16)),
        ("colour with alpha", 6, 4, (8, 16)),
    ):
        for depth in depths:
            out[f"{name} {depth}"] = (depth, colour, channels)
    return out


def kind_of_png(name: str, size: tuple[int, int], interlace: bool, seed: int = 0) -> bytes:
    depth, colour, channels = png_kinds()[name]
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, 1 << depth, (size[1], size[0], channels))
    if depth == 16 and colour == 0:
        samples >>= rng.integers(0, 12)  # some above 255, some below
    before = b""
    if colour == 3:
        before = chunk(b"PLTE", rng.integers(0, 256, 3 << depth, dtype=np.uint8).tobytes())
        before += chunk(b"tRNS", rng.integers(0, 256, 1 << depth, dtype=np.uint8).tobytes())
    rows = interlaced(samples, depth) if interlace else packed(samples, depth)
    return make_png(size[0], size[1], depth, colour, rows, before, int(interlace))


def boxes(width: int, height: int, n: int, seed: int) -> list[tuple[int, int, int, int]]:
    choose = random.Random(seed)
    out = []
    for _ in range(n):
        x, y = choose.randrange(width), choose.randrange(height)
        out.append((x, y, choose.randint(1, width - x), choose.randint(1, height - y)))
    return out


def check_all_of(data: bytes, want: dict[str, np.ndarray], crops: int = 8, seed: int = 0) -> None:
    """Whole and in parts, in every mode."""
    for mode, whole in want.items():
        assert (pixels.decode(data, mode=mode) == whole).all(), mode
        for x, y, w, h in boxes(whole.shape[1], whole.shape[0], crops, seed):
            assert (pixels.decode(data, (x, y, w, h), mode) == whole[y : y + h, x : x + w]).all(), (mode, x, y, w, h)


@pytest.mark.parametrize("interlace", [False, True])
@pytest.mark.parametrize("name", png_kinds())
@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
def test_every_png_and_every_crop_is_pillows(name: str, interlace: bool) -> None:
    for i, size in enumerate(SIZES):
        data = kind_of_png(name, size, interlace, i)
        check_all_of(data, {mode: by_pillow(data, mode) for mode in MODES}, seed=i)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_pngs_that_pillow_writes(mode: str) -> None:
    for i, size in enumerate(SIZES):
        image = (
            make_picture(i, size, mode)
            if mode != "I;16"
            else Image.fromarray(np.arange(size[0] * size[1], dtype=np.uint16).reshape(size[::-1]))
        )
        for options in ({}, {"optimize": True}):
            data = save(image, "PNG", **options)
            check_all_of(data, {m: by_pillow(data, m) for m in MODES}, crops=4, seed=i)


def test_the_transparent_colour_of_a_png_becomes_alpha() -> None:
    rng = np.random.default_rng(3)
    for depth, colour, channels in ((8, 0, 1), (8, 2, 3), (1, 0, 1)):
        samples = rng.integers(0, min(3, 1 << depth), (9, 11, channels))
        data = make_png(
            11, 9, depth, colour, packed(samples, depth), chunk(b"tRNS", struct.pack(f">{channels}H", *[1] * channels))
        )
        check_all_of(data, {mode: by_pillow(data, mode) for mode in MODES})


@pytest.mark.parametrize(("depth", "colour", "channels"), [(2, 0, 1), (4, 0, 1), (16, 0, 1), (16, 2, 3)])
def test_the_transparent_colour_is_compared_at_its_own_depth(depth: int, colour: int, channels: int) -> None:
    """As the PNG specification says; Pillow compares these depths after scaling and misses."""
    top = (1 << depth) - 1
    samples = np.random.default_rng(4).choice([0, 1, top], (9, 11, 1)).repeat(channels, 2)
    data = make_png(11, 9, depth, colour, packed(samples, depth), chunk(b"tRNS", struct.pack(f">{channels}H", *[top] * channels)))
    got = pixels.decode(data, mode="RGBA")
    assert (got[..., 3] == np.where(samples[..., 0] == top, 0, 255)).all()
    assert (got[..., :3] == by_pillow(data, "RGB")).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize(
    "options", [{"quality": 80}, {"quality": 30}, {"lossless": True}, {"lossless": True, "exact": True}], ids=str
)
def test_every_webp_and_every_crop_is_pillows(mode: str, options: dict[str, Any]) -> None:
    for i, size in enumerate([*SIZES, (300, 211)]):
        data = save(make_picture(i, size, mode), "WEBP", **options)
        check_all_of(data, {m: by_pillow(data, m) for m in MODES}, crops=25, seed=i)


def test_of_an_animated_webp_the_first_frame() -> None:
    for i, size in enumerate([(40, 30), (33, 17)]):
        frames = [make_picture(i + k, size, "RGBA") for k in range(3)]
        data = save(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=bool(i))
        assert Image.open(io.BytesIO(data)).n_frames == 3
        check_all_of(data, {m: by_pillow(data, m) for m in MODES}, crops=10, seed=i)


def test_a_first_frame_smaller_than_the_canvas_lies_on_transparent_black() -> None:
    """Made of a still one: VP8X with the flag for animations, ANIM, and one ANMF at (6, 4)."""
    still = save(make_picture(1, (20, 10), "RGBA"), "WEBP", lossless=True, exact=True)[12:]
    if still[:4] == b"VP8X":
        still = still[18:]

    def riff(kind: bytes, data: bytes) -> bytes:
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def u24(v: int) -> bytes:
        return struct.pack("<I", v)[:3]

    frame = u24(3) + u24(2) + u24(19) + u24(9) + u24(100) + b"\0" + still
    body = riff(b"VP8X", b"\x12\0\0\0" + u24(39) + u24(29)) + riff(b"ANIM", b"\xff\x80\x40\xff\0\0") + riff(b"ANMF", frame)
    data = riff(b"RIFF", b"WEBP" + body)
    want = {m: by_pillow(data, m) for m in MODES}
    assert want["RGBA"].shape == (30, 40, 4)
    check_all_of(data, want)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_every_jpeg_in_every_mode(mode: str) -> None:
    for i, size in enumerate(SIZES):
        for progressive in (False, True):
            data = save(make_picture(i, size, mode), "JPEG", quality=88, progressive=progressive)
            check_all_of(data, {m: by_pillow(data, m) for m in MODES}, crops=6, seed=i)


# -- masks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interlace", [False, True])
@pytest.mark.parametrize("name", ["palette 1", "palette 2", "palette 4", "palette 8", "gray 1", "gray 2", "gray 4", "gray 8"])
def test_a_mask_holds_the_numbers_that_are_stored(name: str, interlace: bool) -> None:
    depth = png_kinds()[name][0]
    for i, size in enumerate(SIZES):
        data = kind_of_png(name, size, interlace, i)
        stored = np.asarray(Image.open(io.BytesIO(data))).astype(np.uint8)
        if name in ("gray 2", "gray 4"):
            stored = stored // (255 // ((1 << depth) - 1))  # Pillow stretches them
        check_all_of(data, {"P": stored[..., None]}, seed=i)


def test_masks_of_other_kinds(tmp_path: pathlib.Path) -> None:
    numbers = np.random.default_rng(2).integers(0, 21, (30, 40), dtype=np.uint8)
    palette = Image.fromarray(numbers).convert("P")
    palette.putdata(numbers.ravel().tolist())
    palette.putpalette(np.random.default_rng(3).integers(0, 256, 768).tolist())
    wide = Image.fromarray(numbers.astype(np.uint16))
    files = [
        save(palette, "PNG"),
        save(palette, "TIFF"),
        save(palette, "BMP"),
        save(Image.fromarray(numbers), "PNG"),
        save(wide, "PNG"),
    ]
    path = write_tar(tmp_path / "x.tar", [(f"{i}.png", data) for i, data in enumerate(files)])
    masks = hr.open(path, {"m": hr.mask("png")})
    for i in range(len(files)):
        assert (masks[i]["m"][0] == numbers).all()
    bits = save(Image.fromarray(numbers > 10), "TIFF")
    assert (open_all(tmp_path, [bits], hr.image("img", mode="P"))[0][..., 0] == (numbers > 10)).all()
    colours = Image.new("RGB", (8, 8))
    refused = [save(colours, f) for f in ("PNG", "JPEG", "WEBP", "TIFF")] + [
        save(Image.fromarray(np.full((2, 2), 256, np.uint16)), "PNG")
    ]
    for data in refused:
        with pytest.raises(hr.DataError, match="number"):
            open_all(tmp_path, [data], hr.image("img", mode="P"))


# -- resizing with alpha -----------------------------------------------------------------------------

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "nearest": Image.Resampling.NEAREST}


@pytest.mark.parametrize("name", FILTERS)
def test_alpha_is_resized_as_pillow_does_it(name: str) -> None:
    choose = random.Random(5)
    for i in range(150):
        size = choose.choice([1, 2, 7, 33, 100]), choose.choice([1, 3, 16, 61, 140])
        out = choose.choice([1, 5, 17, 32, 64, 200]), choose.choice([1, 5, 31, 64, 65])
        if i % 5 == 0:
            out = size
        picture = np.asarray(make_picture(i, size, "RGBA"))
        flip = i % 2 == 1
        want = np.asarray(Image.fromarray(picture).resize(out, FILTERS[name]))
        got = pixels.resample(
            picture, (0, 0, *size), out, name, flip=flip, layout=("NHWC", "NCHW")[i % 3 == 0], scalar=i % 7 == 0
        )
        got = got.transpose(1, 2, 0) if i % 3 == 0 else got
        assert (got == (want[:, ::-1] if flip else want)).all(), (size, out)


def open_all(folder: pathlib.Path, files: list[bytes], field: hr.ImageField) -> list[np.ndarray]:
    path = write_tar(folder / "x.tar", [(f"{i:03d}.img", data) for i, data in enumerate(files)])
    data_set = hr.open(path, {"x": field.layout("NHWC")})
    return [data_set[i]["x"] for i in range(len(files))]


def test_rgba_the_whole_way(tmp_path: pathlib.Path) -> None:
    image = make_picture(8, (90, 70), "RGBA")
    (got,) = open_all(tmp_path, [save(image, "PNG")], hr.image("img", mode="RGBA").resize((24, 40)).random_flip(1.0))
    want = ImageOps.mirror(image.resize((40, 24), Image.Resampling.BILINEAR))
    assert (got == np.asarray(want)).all()
    with pytest.raises(hr.UsageError, match="there are RGB, L, RGBA, P"):
        open_all(tmp_path, [b"x"], hr.image("img", mode="CMYK"))


# -- orientation -------------------------------------------------------------------------------------


def with_orientation(image: Image.Image, format: str, value: int, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = value
    exif[0x010F] = "a maker with a name that does not fit into four bytes"
    return save(image, format, exif=exif, **options)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pictures_are_turned_as_exif_says(format: str, tmp_path: pathlib.Path) -> None:
    options: dict[str, Any] = {"lossless": True} if format == "WEBP" else {}
    files = [with_orientation(make_picture(2, (61, 38)), format, value, **options) for value in range(1, 9)]
    upright = [np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(f))).convert("RGB")) for f in files]
    assert len({u.tobytes() for u in upright}) == 8
    for got, want in zip(open_all(tmp_path, files, hr.image("img", orient=True)), upright):
        assert (got == want).all()
    for got, data in zip(open_all(tmp_path, files, hr.image("img")), files):
        assert (got == by_pillow(data, "RGB")).all()
    # Crops are of the upright picture.
    for got, want in zip(open_all(tmp_path, files, hr.image("img", orient=True).center_crop((20, 30))), upright):
        y, x = round((want.shape[0] - 20) / 2), round((want.shape[1] - 30) / 2)
        assert (got == want[y : y + 20, x : x + 30]).all()


def test_fast_is_for_jpegs_that_stand_upright(tmp_path: pathlib.Path) -> None:
    files = [with_orientation(make_picture(2, (331, 250)), "JPEG", value, quality=95) for value in range(1, 9)]
    files += [save(make_picture(2, (331, 250)), format) for format in ("PNG", "WEBP", "BMP")]
    fast = open_all(tmp_path, files, hr.image("img", orient=True, fast=True).resize((40, 40)))
    slow = open_all(tmp_path, files, hr.image("img", orient=True).resize((40, 40)))
    assert (fast[0] != slow[0]).any()
    for a, b in zip(fast[1:], slow[1:]):
        assert (a == b).all()


def test_fields_that_share_a_picture_are_turned_each_as_asked(tmp_path: pathlib.Path) -> None:
    data = with_orientation(make_picture(2, (61, 38)), "JPEG", 6)
    fields = {f"{orient} {mode}": hr.image("img", orient=orient, mode=mode) for orient in (False, True) for mode in MODES}
    sample = hr.open(write_tar(tmp_path / "x.tar", [("0.img", data)]), fields)[0]
    for mode in MODES:
        stored = by_pillow(data, mode).transpose(2, 0, 1)
        assert (sample[f"False {mode}"] == stored).all()
        assert (sample[f"True {mode}"] == np.rot90(stored, -1, (1, 2))).all()


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_that_makes_no_sense_is_none(value: int, tmp_path: pathlib.Path) -> None:
    data = with_orientation(make_picture(2, (61, 38)), "JPEG", value)
    (got,) = open_all(tmp_path, [data], hr.image("img", orient=True))
    assert (got == by_pillow(data, "RGB")).all()


# -- strict ------------------------------------------------------------------------------------------


def test_damage_is_counted_where_the_user_said_so(tmp_path: pathlib.Path) -> None:
    good = save(make_picture(1, (160, 120)), "JPEG", quality=90)
    wrong_sum = bytearray(save(make_picture(1, (160, 120)), "PNG"))
    wrong_sum[-20] ^= 0xFF  # the last IDAT's checksum
    files = [good, good[: len(good) // 2], bytes(wrong_sum), good]
    tar = write_tar(tmp_path / "x.tar", [(f"{i}.img", f) for i, f in enumerate(files)])
    field = hr.image("img", strict=False).resize((32, 32))
    with hr.Loader(tar, 2, {"x": field}, shuffle=False, output="numpy") as loader:
        batches = [b["x"].copy() for b in loader]
        assert loader.stats()["damaged"] == 2
    assert (batches[0][0] == batches[1][1]).all()
    for i in (1, 2):
        with pytest.raises(hr.DataError):
            hr.open(tar, {"x": hr.image("img")})[i]
    with hr.Loader(tar, 4, {"x": field.map(lambda a: a)}, shuffle=False, output="numpy") as loader:
        next(iter(loader))
        assert loader.stats()["damaged"] == 2


# -- Pillow's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_what_only_pillow_opens_is_pillows(mode: str, tmp_path: pathlib.Path) -> None:
    files = [
        save(make_picture(3, (41, 29)), "BMP"),
        save(make_picture(3, (41, 29)), "TIFF"),
        save(make_picture(3, (41, 29), "RGBA"), "TIFF", compression="tiff_lzw"),
        save(make_picture(3, (41, 29), "P"), "GIF"),
        save(make_picture(3, (41, 29)), "JPEG2000"),
        save(make_picture(3, (41, 29)), "PPM"),
    ]
    for got, data in zip(open_all(tmp_path, files, hr.image("img", mode=mode)), files):
        assert (got == by_pillow(data, mode)).all()
    for got, data in zip(open_all(tmp_path, files, hr.image("img", mode=mode).center_crop(16)), files):
        assert (got == by_pillow(data, mode)[6:22, 12:28]).all()


FALLBACK = """
import sys, headrace as hr
assert "PIL" not in sys.modules
ds = hr.open({tar!r}, {{"x": hr.image("img")}})
ds[0]
assert "PIL" not in sys.modules
if {hide}:
    sys.modules["PIL"] = None
try:
    ds[1]; ds[1]
    print("PIL" in sys.modules)
except hr.Unsupported as e:
    print(e)
"""


@pytest.mark.parametrize("hide", [False, True])
def test_pillow_is_imported_with_the_first_such_picture(hide: bool, tmp_path: pathlib.Path) -> None:
    image = make_picture(1, (20, 20))
    tar = write_tar(tmp_path / "x.tar", [("0.img", save(image, "PNG")), ("1.img", save(image, "TIFF"))])
    script = FALLBACK.format(tar=str(tar), hide=hide)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    if hide:
        assert "which is not installed (pip install pillow)" in run.stdout
    else:
        assert run.stdout == "True\n"
        assert run.stderr.count("TIFF pictures are decoded by Pillow") == 1


def test_threads_of_a_loader_take_turns_with_pillow(tmp_path: pathlib.Path) -> None:
    images = [make_picture(i, (50, 40)) for i in range(24)]
    tar = write_tar(
        tmp_path / "x.tar", [(f"{i:02d}.img", save(image, ("TIFF", "PNG", "BMP")[i % 3])) for i, image in enumerate(images)]
    )
    with hr.Loader(tar, 8, {"x": hr.image("img").layout("NHWC").list()}, shuffle=False, threads=4, output="numpy") as loader:
        got = [a for b in loader for a in b["x"]]
    for a, image in zip(got, images):
        assert (a == np.asarray(image)).all()


# -- sizes, listing, encoders ------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF"])
def test_the_size_is_in_the_header(format: str) -> None:
    data = save(make_picture(1, (123, 45)), format)
    assert hr.image_size(data) == (123, 45)
    if format in ("PNG", "WEBP"):
        assert hr.image_size(data[:64]) == (123, 45)
    with pytest.raises(hr.DataError):
        hr.image_size(data[:5])
    with pytest.raises(hr.UsageError, match="not int"):
        hr.image_size(5)  # type: ignore[arg-type]
    with pytest.raises(hr.DataError, match="not a picture"):
        hr.image_size(b"hello")


def test_the_command_line_lists_the_codecs() -> None:
    run = subprocess.run([sys.executable, "-m", "headrace", "formats"], capture_output=True, text=True, check=True)
    for word in ("jpeg", "libjpeg-turbo", "png", "libspng", "webp", "libwebp", "Pillow"):
        assert word in run.stdout


@pytest.mark.parametrize("mode", MODES)
def test_png_and_lossless_webp_give_back_every_pixel(mode: str) -> None:
    for i, size in enumerate(SIZES):
        picture = np.asarray(make_picture(i, size, mode)).reshape(size[1], size[0], -1)
        png = pixels.encode("png", picture)
        assert Image.open(io.BytesIO(png)).mode == mode
        assert (by_pillow(png, mode) == picture).all()
        webp = pixels.encode("webp", picture, lossless=True)
        assert (by_pillow(webp, mode) == picture).all()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg_and_webp_are_as_good_as_pillows(mode: str) -> None:
    picture = np.asarray(make_picture(4, (301, 203), mode)).reshape(203, 301, -1)
    assert by_pillow(pixels.encode("jpeg", picture, 90), mode).shape == picture.shape
    for name, format in (("jpeg", "JPEG"), ("webp", "WEBP")):
        sizes = []
        for quality in (30, 60, 90):
            ours = pixels.encode(name, picture, quality)
            theirs = save(Image.fromarray(picture.squeeze()), format, quality=quality)
            error = [float(((by_pillow(d, mode).astype(float) - picture) ** 2).mean()) for d in (ours, theirs)]
            assert error[0] < 1.1 * error[1] + 0.5
            sizes.append(len(ours))
        assert sizes == sorted(sizes)


def test_encoders_refuse_what_they_cannot_write() -> None:
    rgba = np.zeros((4, 4, 4), np.uint8)
    with pytest.raises(pixels.PixelError, match="no alpha"):
        pixels.encode("jpeg", rgba)
    with pytest.raises(pixels.PixelError, match="1 to 100"):
        pixels.encode("webp", rgba, quality=0)
    with pytest.raises(pixels.PixelError, match="writes no 'tiff'; it writes jpeg, png, webp"):
        pixels.encode("tiff", rgba)
    with pytest.raises(pixels.PixelError, match="16383"):
        pixels.encode("webp", np.zeros((1, 16384, 3), np.uint8))
    with pytest.raises(pixels.PixelError):
        pixels.encode("jpeg", np.zeros((1, 65501, 3), np.uint8))
