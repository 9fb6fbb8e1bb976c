# SPDX-License-Identifier: Apache-2.0
"""One table of what the stages recorded: python bench/gpu/run.py table."""

from __future__ import annotations

from typing import Any

CORES = (1, 2, 4, 6, 8, 16)


def _latest(lines: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The last good line of each measurement."""
    out: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in lines:
        if "failed" in line:
            continue
        key = (line["stage"], *(str(line.get(k, "")) for k in ("model", "way", "what", "batch", "states")), str(line["cores"]))
        out[key] = line
    return out


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _by_cores(lines: list[dict[str, Any]], say: str) -> list[str]:
    at = {int(line["cores"]): line for line in lines}
    if say == "share":
        return [f"{100 * at[n]['share']:.0f} %" if n in at else "–" for n in CORES]
    return [f"{at[n]['rate']:,.0f}" if n in at else "–" for n in CORES]


def made_of(lines: list[dict[str, Any]]) -> str:
    latest = list(_latest(lines).values())
    out = [_row("images/s, by cores", [str(n) for n in CORES]), "|---" * (len(CORES) + 1) + "|"]
    for stage in ("alone", "dali alone"):
        for way in sorted({str(line.get("way", "")) for line in latest if line["stage"] == stage}):
            rows = [line for line in latest if line["stage"] == stage and line.get("way") == way]
            out.append(_row(f"{stage}, {way}", _by_cores(rows, "rate")))
    trained = [line for line in latest if line["stage"] == "train"]
    for model in sorted({str(line["model"]) for line in trained}, reverse=True):
        replayed = [line["replayed"] for line in trained if line["model"] == model]
        for way in sorted({str(line["way"]) for line in trained if line["model"] == model}):
            rows = [line for line in trained if line["model"] == model and line["way"] == way]
            out.append(_row(f"{model} ({min(replayed):,.0f} to {max(replayed):,.0f}/s), {way}", _by_cores(rows, "share")))
    for line in latest:
        if line["stage"] == "nvjpeg":
            out.append(
                f"\nnvJPEG's engines alone, batch {line['batch']}, {line['states']} decoders: {line['rate']:,.0f} images/s"
            )
        if line["stage"] == "copies":
            out.append(f"\ncopies, {line['what']}: {line['gigabytes']:.1f} GB/s")
        if line["stage"] == "check":
            out.append(f"\ncheck, {line['what']}: {line['different']:,} of {line['values']:,} values differ")
    for line in lines:
        if "failed" in line:
            out.append(f"\nFAILED {line.get('task', line['stage'])}: {line['failed']}")
    return "\n".join(out)
