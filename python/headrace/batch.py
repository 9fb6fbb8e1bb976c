# SPDX-License-Identifier: Apache-2.0
"""A batch is a dict of arrays, and knows which samples it holds."""

from __future__ import annotations

from typing import Any

import numpy as np

STATE_VERSION = 1


class Batch(dict[str, Any]):
    """``batch[name]`` is a tensor (or a list, or a tuple for padded and ragged fields)."""

    _raw: Any

    @property
    def indices(self) -> np.ndarray:
        """Which samples these are: the numbers of ``ds[i]`` (int64)."""
        return self._raw.indices()

    @property
    def valid(self) -> np.ndarray:
        """True for real samples, False for padding."""
        return np.frombuffer(self._raw.valid(), dtype=np.bool_)

    @property
    def sources(self) -> np.ndarray:
        """Of a blend: the number of the source each sample came from."""
        return np.asarray(self._raw.sources(), dtype=np.int64)

    @property
    def state(self) -> dict[str, Any]:
        """The loader's state as of after this batch, for wrappers that fetch one ahead."""
        return {"headrace": STATE_VERSION, **self._raw.state()}
