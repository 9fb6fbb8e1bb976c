# SPDX-License-Identifier: Apache-2.0
"""headrace feeds deep-learning training: shuffled, split over ranks, decoded, ahead of the step.

>>> import headrace as hr
>>> loader = hr.Loader("train-{0000..0007}.tar", batch_size=64, seed=1,
...                    fields={"image": hr.image("jpg").random_resized_crop(224), "label": hr.scalar("cls")})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import fields as _fields
from .batch import Batch
from .blend import Blend, blend
from .dataset import Dataset
from .dataset import open as open
from .errors import BadSample, DataError, Error, StorageError, Unsupported, UsageError
from .fields import IMAGENET, ArrayField, Field, ImageField, array, columns, image, key, scalar, text
from .joint import MaskField, boxes, joint, mask, points
from .loader import Loader
from .packed import packed
from .processes import Context
from .staging import remove_stage, stage
from .storage import Storage, storage
from .tokens import tokens

if TYPE_CHECKING:  # what type checkers and editors see of _LAZY
    from .arrays.looking import to_xarray
    from .arrays.statistics import stats
    from .caching import Cache, cache
    from .joining import join
    from .mapping import map as map
    from .mix import Mix, cutmix, mixup
    from .plugins.registry import Extent, register_codec, register_format
    from .sources.opening import from_python, from_torch
    from .tokenizing.tokenize import tokenize
    from .tools import build_index, doctor, formats, image_size, pack
    from .tracing import trace
    from .weighting import weighted

__version__ = "0.1.0"

# Beside open and map these are no part of __all__: a star import must not hide what Python calls so.
bytes = _fields.bytes_
json = _fields.json_

#: What a Loader over files does without: the module of each name, imported when the name is first used. So that importing
#: headrace stays cheap, modules above import inside functions what few calls need. A name that a module of this package
#: has too (blend, packed, …) cannot stand here: importing the module would put it in the name's place.
_LAZY = {
    "Cache": "caching",
    "Extent": "plugins.registry",
    "Mix": "mix",
    "build_index": "tools",
    "cache": "caching",
    "cutmix": "mix",
    "doctor": "tools",
    "formats": "tools",
    "from_python": "sources.opening",
    "from_torch": "sources.opening",
    "image_size": "tools",
    "join": "joining",
    "map": "mapping",
    "mixup": "mix",
    "pack": "tools",
    "register_codec": "plugins.registry",
    "register_format": "plugins.registry",
    "stats": "arrays.statistics",
    "to_xarray": "arrays.looking",
    "tokenize": "tokenizing.tokenize",
    "trace": "tracing",
    "weighted": "weighting",
}

if not TYPE_CHECKING:  # a type checker must go on to find what is not there

    def __getattr__(name: str) -> object:
        """Called for names that are not there yet (PEP 562)."""
        if name not in _LAZY:
            raise AttributeError(f"module 'headrace' has no attribute '{name}'", name=name)
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "IMAGENET",
    "ArrayField",
    "BadSample",
    "Batch",
    "Blend",
    "Cache",
    "Context",
    "DataError",
    "Dataset",
    "Error",
    "Extent",
    "Field",
    "ImageField",
    "Loader",
    "MaskField",
    "Mix",
    "Storage",
    "StorageError",
    "Unsupported",
    "UsageError",
    "array",
    "blend",
    "boxes",
    "build_index",
    "cache",
    "columns",
    "cutmix",
    "doctor",
    "formats",
    "from_python",
    "from_torch",
    "image",
    "image_size",
    "join",
    "joint",
    "key",
    "mask",
    "mixup",
    "pack",
    "packed",
    "points",
    "register_codec",
    "register_format",
    "remove_stage",
    "scalar",
    "stage",
    "stats",
    "storage",
    "text",
    "to_xarray",
    "tokenize",
    "tokens",
    "trace",
    "weighted",
]
