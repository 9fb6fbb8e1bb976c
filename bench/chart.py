# SPDX-License-Identifier: Apache-2.0
"""Draws a run of `./dev bench --peers` as SVG: two panels of bars, ours in colour, other filters hatched.

python bench/chart.py build/results/bench.json docs/bench.svg     # again, from what was measured
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any
from xml.sax.saxutils import escape

LABELS, PANEL, GAP, BAR, STEP, TOP = 236, 300, 70, 17, 25, 64
PANELS = (("f32", "f32, normalised"), ("u8", "u8"))
STYLE = """
  text { font-family: system-ui, sans-serif; font-size: 13px; fill: #3b4350 }
  .title { font-weight: 600; font-size: 14px }
  .note { font-size: 12px; fill: #6b7482 }
  .ours { fill: #1b6ca8 } .limit { fill: #c3cad4 } .peer { fill: #8d99a8 }
  .axis { stroke: #c3cad4 }
  .stripe { stroke: #ffffff; stroke-width: 3 }
  .bold { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #d5dae1 } .note { fill: #98a2b0 }
    .ours { fill: #4ba3e0 } .limit { fill: #4a525e } .peer { fill: #76818f }
    .axis { stroke: #4a525e } .stripe { stroke: #0d1117 }
  }
"""


def _kind(entry: dict[str, Any]) -> str:
    return {"headrace": "ours", "bare_loop": "limit"}.get(entry["script"], "peer")


def _other_filter(entry: dict[str, Any]) -> bool:
    prepared = entry["prepared"]
    return bool(prepared and prepared["pixels"] not in ("", "same"))


def _bar(x: float, y: float, width: float, entry: dict[str, Any]) -> list[str]:
    box = f'x="{x}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"'
    out = [f'<rect class="{_kind(entry)}" {box}/>']
    if _other_filter(entry):
        out.append(f'<rect fill="url(#stripes)" {box}/>')
    return out


def draw(run: dict[str, Any]) -> str:
    entries = sorted((e for e in run["contenders"] if any(e["median"].values())), key=lambda e: -e["median"]["f32"])
    most = max((rate for e in entries for rate in e["median"].values()), default=1)
    width = LABELS + len(PANELS) * (PANEL + GAP)
    bottom = TOP + STEP * len(entries)
    settings, machine = run["settings"], run["machine"]
    note = (
        f"{machine['cores']} cores, {machine['processor']}; JPEG 500x375 to 224x224, batch {settings['batch']}, "
        f"medians of {settings['rounds']} interleaved rounds"
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 58}" role="img" '
        'aria-label="Images per second of headrace and its peers">',
        f"<style>{STYLE}</style>",
        '<defs><pattern id="stripes" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<line class="stripe" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>',
        '<text class="title" x="12" y="26">JPEG to training batch, images per second</text>',
    ]
    for p, (_, title) in enumerate(PANELS):
        x = LABELS + p * (PANEL + GAP)
        out.append(f'<text class="title" x="{x}" y="{TOP - 12}">{title}</text>')
        out.append(f'<line class="axis" x1="{x - 0.5}" y1="{TOP - 4}" x2="{x - 0.5}" y2="{bottom}"/>')
    for i, entry in enumerate(entries):
        y = TOP + i * STEP
        bold = " bold" if _kind(entry) == "ours" else ""
        label = entry["title"]
        if _other_filter(entry) and entry["prepared"]["pixels"] not in label:
            label += ", " + entry["prepared"]["pixels"]
        out.append(f'<text class="label{bold}" x="{LABELS - 10}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
        for p, (mode, _) in enumerate(PANELS):
            rate = entry["median"][mode]
            x, length = LABELS + p * (PANEL + GAP), PANEL * rate / most
            out += _bar(x, y, length, entry)
            out.append(f'<text class="label{bold}" x="{x + length + 6:.1f}" y="{y + 13}">{rate:,.0f}</text>')
    out.append(f'<text class="note" x="12" y="{bottom + 26}">{escape(note)}</text>')
    out.append(
        f'<text class="note" x="12" y="{bottom + 44}">bare loop: the kernels alone, from memory; or from a file in memory, as a loader reads. '
        "Striped: not the antialiased bilinear filter, other pixels for less work.</text>"
    )
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_text(draw(json.loads(source.read_text())))
