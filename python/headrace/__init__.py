# SPDX-License-Identifier: Apache-2.0
"""headrace feeds deep-learning training: shuffled, split over ranks, decoded, ahead of the step.

>>> import headrace as hr
>>> loader = hr.Loader("train-{0000..0007}.tar", batch_size=64, seed=1,
...                    fields={"image": hr.image("jpg").random_resized_crop(224), "label": hr.scalar("cls")})
"""

from __future__ import annotations

from . import fields as _fields
from . import mapping as _mapping
from .arrays.looking import to_xarray
from .arrays.statistics import stats
from .batch import Batch
from .blend import Blend, blend
from .caching import Cache, cache
from .dataset import Dataset
from .dataset import open as open
from .errors import BadSample, DataError, Error, StorageError, Unsupported, UsageError
from .fields import IMAGENET, ArrayField, Field, ImageField, array, columns, image, key, scalar, text
from .joining import join
from .joint import MaskField, boxes, joint, mask, points
from .loader import Loader
from .mix import Mix, cutmix, mixup
from .packed import packed
from .plugins.registry import Extent, register_codec, register_format
from .processes import Context
from .sources.opening import from_python, from_torch
from .staging import remove_stage, stage
from .storage import Storage, storage
from .tokenizing.tokenize import tokenize
from .tokens import tokens
from .tools import build_index, doctor, formats, image_size, pack
from .tracing import trace
from .weighting import weighted

__version__ = "0.1.0"

# Beside open these are no part of __all__: a star import must not hide what Python calls so.
bytes = _fields.bytes_
json = _fields.json_
map = _mapping.map

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
