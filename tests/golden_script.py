# SPDX-License-Identifier: Apache-2.0
"""What the scripts make_golden_*.py have in common: each runs in its peer's own environment, without headrace.

    make_golden_X.py peer            who writes and reads, with the version
    make_golden_X.py write FOLDER    the golden files, as they are committed in tests/golden/X
    make_golden_X.py check FOLDER    FOLDER/SET is what `hr.pack` made of the golden SET: the peer finds in it what is expected

`./dev golden` calls them.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
Action = Callable[[pathlib.Path], None]


def expected(format: str) -> Any:
    return json.loads((GOLDEN / format / "expected.json").read_text())


def sets_in(folder: pathlib.Path) -> list[pathlib.Path]:
    found = sorted(p for p in folder.iterdir() if p.is_dir())
    if not found:
        sys.exit(f"{folder}: nothing to check")
    return found


def shards_in(folder: pathlib.Path, suffix: str) -> list[pathlib.Path]:
    found = sorted(folder.glob(f"*{suffix}"))
    if not found:
        sys.exit(f"{folder}: no {suffix} in it")
    return found


def agree(name: str, got: list[Any], want: list[Any]) -> None:
    """Says where the first sample differs, and ends the program; else how many are alike."""
    if len(got) != len(want):
        sys.exit(f"{name}: {len(got)} samples, not {len(want)}")
    for i, (a, b) in enumerate(zip(got, want)):
        if a != b:
            fields = [k for k in {**a, **b} if a.get(k) != b.get(k)] if isinstance(a, dict) and isinstance(b, dict) else []
            sys.exit(f"{name}: sample {i} differs {fields}: {str(a)[:300]} is not {str(b)[:300]}")
    print(f"{name}: {len(got)} samples agree")


def run(peer: str, write: Action | None = None, check: Action | None = None) -> None:
    """The command line of a script; `None` where the peer does not write, or headrace does not."""
    actions: dict[str, Action | None] = {"write": write, "check": check}
    command, *places = sys.argv[1:] or [""]
    if command == "peer" and not places:
        print(peer)
        return
    action = actions.get(command)
    if action is None or len(places) != 1:
        can = " | ".join(["peer", *(f"{name} FOLDER" for name, known in actions.items() if known)])
        sys.exit(f"{peer}: {can}")
    place = pathlib.Path(places[0])
    if command == "write":
        place.mkdir(parents=True, exist_ok=True)
    action(place)
