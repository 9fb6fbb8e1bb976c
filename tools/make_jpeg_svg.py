# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/jpeg.svg, what of a JPEG is decoded and by which stage; ./dev docs writes it."""

from __future__ import annotations

# Parts of the picture: name, colour, what it is.
SKIPPED, BESIDE, MARGIN, CROP, NEVER = "skipped", "beside", "margin", "crop", "never"
COLOURS = {SKIPPED: "#cfdce6", BESIDE: "#b7cbda", MARGIN: "#f3cf86", CROP: "#e58f2a", NEVER: "#f4f4f4"}
LEGEND = [
    (SKIPPED, "rows above"),
    (BESIDE, "columns beside"),
    (MARGIN, "margin: whole blocks, 2 columns"),
    (CROP, "the crop"),
    (NEVER, "rows below: never read"),
]
# (x, y, width, height) within the picture, from the outside in.
PARTS = [
    (SKIPPED, (0, 0, 300, 70)),
    (BESIDE, (0, 70, 300, 90)),
    (MARGIN, (96, 70, 144, 90)),
    (CROP, (106, 70, 118, 90)),
    (NEVER, (0, 160, 300, 65)),
]
STAGES = [
    (
        "entropy decoding",
        ["bits to coefficients;", "cannot be skipped before", "what is wanted"],
        [SKIPPED, BESIDE, MARGIN, CROP],
    ),
    ("IDCT, upsampling, colour", ["coefficients to RGB,", "16 rows at a time,", "kept in the cache"], [MARGIN, CROP]),
    ("resize and flip", ["across, then down;", "a ring of rows as high", "as the filter"], [CROP]),
    ("normalise, cast, layout", ["one multiply-add, in the", "pass that stores; floats", "go past the caches"], [CROP]),
]
LEFT, TOP = 24, 46
BOX, GAP, FIRST = 186, 24, 372


def text(x: float, y: float, words: str, size: float = 12.5, fill: str = "#333", anchor: str = "start", weight: int = 400) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def picture() -> list[str]:
    out = [text(LEFT, TOP - 14, "A JPEG, and the crop that was drawn", 13, "#555")]
    for part, (x, y, width, height) in PARTS:
        out.append(f'<rect x="{LEFT + x}" y="{TOP + y}" width="{width}" height="{height}" fill="{COLOURS[part]}"/>')
    out.append(f'<rect x="{LEFT}" y="{TOP}" width="300" height="225" fill="none" stroke="#123"/>')
    for i, (part, words) in enumerate(LEGEND):
        x, y = LEFT + 230 * i, TOP + 250
        out.append(f'<rect x="{x}" y="{y}" width="14" height="14" fill="{COLOURS[part]}" stroke="#889"/>')
        out.append(text(x + 20, y + 12, words))
    return out


def stage(i: int, name: str, words: list[str], parts: list[str]) -> list[str]:
    x = FIRST + i * (BOX + GAP)
    middle = x + BOX / 2
    out = [
        f'<rect x="{x}" y="{TOP + 30}" width="{BOX}" height="150" rx="10" fill="#ffffff" stroke="#1b6ca8" stroke-width="1.5"/>',
        text(middle, TOP + 56, name, 14.5, "#123", "middle", 600),
        *(text(middle, TOP + 82 + 18 * k, line, anchor="middle") for k, line in enumerate(words)),
    ]
    start = middle - 13 * len(parts)
    for k, part in enumerate(parts):
        at = f'x="{start + 26 * k + 4}" y="{TOP + 146}" width="18" height="18"'
        out.append(f'<rect {at} fill="{COLOURS[part]}" stroke="#889"/>')
    begin = x - GAP + 2 if i else LEFT + 304
    ends = f'x1="{begin}" y1="{TOP + 105}" x2="{x - 3}" y2="{TOP + 105}"'
    out.append(f'<line {ends} stroke="#1b6ca8" stroke-width="2" marker-end="url(#a)"/>')
    return out


def draw() -> str:
    slot = FIRST + len(STAGES) * (BOX + GAP)
    width, height = slot + 128, TOP + 284
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" role="img" '
        'aria-label="Which parts of a JPEG each stage works on">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#1b6ca8"/></marker></defs>',
        *picture(),
        text(FIRST, TOP - 14, "Each stage works on the parts below its name, and on no others", 13, "#555"),
    ]
    for i, (name, words, parts) in enumerate(STAGES):
        out += stage(i, name, words, parts)
    ends = f'x1="{slot - GAP + 2}" y1="{TOP + 105}" x2="{slot - 3}" y2="{TOP + 105}"'
    out += [
        f'<line {ends} stroke="#1b6ca8" stroke-width="2" marker-end="url(#a)"/>',
        f'<rect x="{slot}" y="{TOP + 55}" width="104" height="100" rx="10" fill="#fff6e5" stroke="#d99a2b" stroke-width="1.5"/>',
        text(slot + 52, TOP + 94, "slot of", 14.5, "#123", "middle", 600),
        text(slot + 52, TOP + 114, "the batch", 14.5, "#123", "middle", 600),
        "</svg>",
    ]
    return "\n".join(out) + "\n"
