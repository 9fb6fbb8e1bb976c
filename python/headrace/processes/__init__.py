# SPDX-License-Identifier: Apache-2.0
"""Functions in processes of their own, over shared memory."""

from __future__ import annotations

from .calling import Context
from .pool import Pool, Processes

__all__ = ["Context", "Pool", "Processes"]
