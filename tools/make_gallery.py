# SPDX-License-Identifier: Apache-2.0
"""Draws docs/gallery.jpg: every step of a picture, on one generated photograph, with what was written under it.

python tools/make_gallery.py            writes docs/gallery.jpg and docs/gallery.md
python tools/make_gallery.py --check    fails where a step is missing or gallery.md is not current
"""

from __future__ import annotations

import io
import pathlib
import re
import sys
import tarfile
import tempfile

import headrace as hr
import numpy as np
from headrace import photos
from PIL import Image, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDE = 150  # of a picture
GAP = 10
TEXT = 34  # height of two lines under it
COLUMNS = 6

# What the user writes after hr.image("jpg"); several draws where the step is random.
PICTURES = [
    "",
    "resize(24, filter='nearest').resize(150, filter='nearest')",
    "resize(24).resize(150, filter='bilinear')",
    "resize(24).resize(150, filter='bicubic')",
    "resize(24).resize(150, filter='lanczos')",
    "center_crop(90)",
    "random_resized_crop(150)",
    "random_crop(100)",
    "pad(25, fill=(30, 90, 160))",
    "pad(25, padding_mode='edge')",
    "pad(25, padding_mode='reflect')",
    "pad(25, padding_mode='symmetric')",
    "random_crop(150, padding=40, padding_mode='reflect')",
    "random_flip(p=1)",
    "random_vertical_flip(p=1)",
    "random_rotation((30, 30), interpolation='bilinear')",
    "random_affine(0, translate=(0.4, 0.2), fill=128)",
    "random_affine(0, shear=(25, 25), interpolation='bilinear')",
    "random_affine(15, scale=(0.5, 0.8), shear=10)",
    "color_jitter(brightness=(0.5, 0.5))",
    "color_jitter(brightness=(1.6, 1.6))",
    "color_jitter(contrast=(0.4, 0.4))",
    "color_jitter(contrast=(1.8, 1.8))",
    "color_jitter(saturation=(0.2, 0.2))",
    "color_jitter(saturation=(2.5, 2.5))",
    "color_jitter(hue=(0.15, 0.15))",
    "color_jitter(hue=(-0.3, -0.3))",
    "color_jitter(0.4, 0.4, 0.4, 0.1)",
    "random_grayscale(p=1)",
    "gaussian_blur(23, sigma=(2, 2))",
    "random_adjust_sharpness(0, p=1)",
    "random_adjust_sharpness(4, p=1)",
    "random_solarize(128, p=1)",
    "random_posterize(2, p=1)",
    "random_autocontrast(p=1)",
    "random_equalize(p=1)",
    "random_invert(p=1)",
    "random_erasing(p=1)",
    "random_erasing(p=1, value='random')",
    "rand_augment()",
    "rand_augment(magnitude=25)",
    "trivial_augment()",
    "trivial_augment() ",
    "auto_augment()",
    "auto_augment('cifar10')",
    "auto_augment('svhn')",
    "normalize(hr.IMAGENET)",
    "cast('f16').layout('NHWC')",
]


def photograph() -> bytes:
    """A generated photograph with colours and a form in it, so that one sees what turned and what changed hue."""
    image = Image.fromarray(photos.make_pixels(12, (180, 150)))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 112, 180, 150), fill=(70, 120, 50))
    draw.polygon([(20, 112), (60, 40), (100, 112)], fill=(176, 60, 40))
    draw.rectangle((48, 78, 72, 112), fill=(236, 214, 150))
    draw.ellipse((120, 14, 160, 54), fill=(250, 205, 60))
    noise = np.random.default_rng(1).normal(0, 5, (150, 180, 1))
    pixels = np.clip(np.asarray(image).astype(float) + noise, 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=95, subsampling=0)
    return out.getvalue()


def picture(steps: str, source: pathlib.Path, number: int) -> Image.Image:
    field = eval(f'hr.image("jpg"){"." + steps if steps else ""}', {"hr": hr})
    with hr.Loader(source, 1, {"i": field.list()}, shuffle=False, seed=number, output="numpy") as loader:
        value = next(iter(loader.epoch(0)))["i"][0].astype(np.float32)
    if "NHWC" not in steps:
        value = value.transpose(1, 2, 0)
    if "normalize" in steps:  # so that numbers can be seen: 0 is gray, 2 is white
        value = value * 64 + 128
    image = Image.fromarray(np.clip(value, 0, 255).astype(np.uint8))
    image.thumbnail((SIDE, SIDE))
    return image


def wrapped(text: str, font: ImageFont.FreeTypeFont) -> list[str]:
    lines = [""]
    for word in re.split(r"(?<=,) |(?<=[a-z]\()|(?<=\)\.)", text):
        space = " " if lines[-1].endswith(",") else ""
        if font.getlength(lines[-1] + space + word) > SIDE + GAP - 4:
            lines.append(word)
        else:
            lines[-1] += space + word
    return lines


def sheet() -> Image.Image:
    font = ImageFont.load_default(10)
    rows = -(-len(PICTURES) // COLUMNS)
    cell = (SIDE + GAP, SIDE + TEXT + GAP)
    out = Image.new("RGB", (COLUMNS * cell[0] + GAP, rows * cell[1] + GAP), (250, 250, 248))
    draw = ImageDraw.Draw(out)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "x.tar"
        with tarfile.open(source, "w") as tar:
            jpeg = photograph()
            info = tarfile.TarInfo("0.jpg")
            info.size = len(jpeg)
            tar.addfile(info, io.BytesIO(jpeg))
        for i, steps in enumerate(PICTURES):
            x, y = GAP + i % COLUMNS * cell[0], GAP + i // COLUMNS * cell[1]
            image = picture(steps, source, i)
            out.paste(image, (x + (SIDE - image.width) // 2, y + (SIDE - image.height) // 2))
            for k, line in enumerate(wrapped(steps.strip() or "the picture", font)[:3]):
                draw.text((x, y + SIDE + 2 + 11 * k), line, fill=(40, 40, 40), font=font)
    return out


def page() -> str:
    return (
        "# Gallery\n\n"
        "Every step on one picture, made by `python tools/make_gallery.py`; what stands under a picture is what follows\n"
        '`hr.image("jpg").`. What each step is equal to: [transforms.md](transforms.md).\n\n'
        "![every step of a picture, with its parameters](gallery.jpg)\n"
    )


def missing() -> list[str]:
    inc = (ROOT / "src/transform/transforms.inc").read_text()
    return [s for s in re.findall(r"HEADRACE_TRANSFORM\((\w+)\)", inc) if not any(re.search(rf"\b{s}\(", p) for p in PICTURES)]


def main() -> int:
    for step in missing():
        print(f"tools/make_gallery.py has no picture of {step}")
    target = ROOT / "docs/gallery.jpg"
    if "--check" in sys.argv:
        current = target.exists() and (ROOT / "docs/gallery.md").read_text() == page()
        print("gallery: current" if current else "the gallery is not current: python tools/make_gallery.py")
        return 1 if missing() or not current else 0
    sheet().save(target, quality=76, optimize=True)
    (ROOT / "docs/gallery.md").write_text(page())
    print(f"wrote {target.relative_to(ROOT)}, {target.stat().st_size // 1024} KB")
    return 1 if missing() else 0


if __name__ == "__main__":
    sys.exit(main())
