# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/flow.svg, the way of the data, box by box; ./dev docs writes it."""

from __future__ import annotations

BOXES = [
    ("index/ format/", "what is there", ["tar, folders, lists", "samples as extents"]),
    ("plan/", "which next", ["order is a pure", "function of (seed, epoch)"]),
    ("storage/", "bytes", ["ranges, merged,", "in the order of need"]),
    ("codec/ transform/", "pixels", ["decode only the crop,", "resize, normalise"]),
    ("batch/", "together", ["straight into the", "slot of the batch"]),
    ("your loop", 'batch["image"]', ["torch, NumPy, JAX,", "no copy"]),
]
WIDTH, HEIGHT, GAP = 172, 104, 26


def draw() -> str:
    total = len(BOXES) * (WIDTH + GAP) - GAP + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} 216" font-family="system-ui, sans-serif" role="img" '
        'aria-label="The way of the data through headrace">',
        f'<rect width="{total}" height="216" fill="#ffffff"/>',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#1b6ca8"/></marker></defs>',
        f'<rect x="10" y="24" width="{total - WIDTH - GAP - 24}" height="178" rx="14" fill="#eef5fa" stroke="#9cc3de"/>',
        '<text x="24" y="194" font-size="13" fill="#1b6ca8">engine/ owns every thread: some wait for storage, some compute; one memory budget, no worker processes</text>',
    ]
    for i, (folder, role, words) in enumerate(BOXES):
        x = 20 + i * (WIDTH + GAP)
        fill, stroke = ("#fff6e5", "#d99a2b") if i == len(BOXES) - 1 else ("#ffffff", "#1b6ca8")
        out.append(
            f'<rect x="{x}" y="52" width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'
        )
        middle = x + WIDTH / 2
        out.append(
            f'<text x="{middle}" y="43" font-size="12" text-anchor="middle" fill="#555">{role}</text>'.replace(
                '"image"', "&quot;image&quot;"
            )
        )
        out.append(f'<text x="{middle}" y="82" font-size="15" font-weight="600" text-anchor="middle" fill="#123">{folder}</text>')
        for k, word in enumerate(words):
            out.append(f'<text x="{middle}" y="{110 + 18 * k}" font-size="12.5" text-anchor="middle" fill="#333">{word}</text>')
        if i + 1 < len(BOXES):
            out.append(
                f'<line x1="{x + WIDTH + 2}" y1="104" x2="{x + WIDTH + GAP - 3}" y2="104" stroke="#1b6ca8" stroke-width="2" marker-end="url(#a)"/>'
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"
