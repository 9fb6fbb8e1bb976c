# SPDX-License-Identifier: Apache-2.0
"""Functions that processes import by name: this module needs nothing but NumPy."""

from __future__ import annotations

from typing import Any


def darker(batch: dict[str, Any]) -> None:
    batch["x"] //= 2
