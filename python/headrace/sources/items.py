# SPDX-License-Identifier: Apache-2.0
"""What a sample of a Python object looks like, and its values as bytes.

A sample is a tuple (fields ``"0"``, ``"1"``, …), a dict (its keys; nested dicts give dotted names), a named tuple or a
data class (its names), or a single value (``"0"``). The engine's ItemEncoder takes what is of the learned type and
shape; everything else comes here.
"""

from __future__ import annotations

import operator
import pickle
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from ..dtypes import NAMES
from ..errors import BadSample, DataError, UsageError, remember
from ..processes.calling import words_of
from ..source_paths import encodes

_INT64 = range(-(1 << 63), 1 << 63)


class Mismatch(UsageError):
    """A sample that is not what the samples looked at first were."""


class Missing(BadSample):
    """A sample without a value of a field that every sample should have."""


@dataclass(frozen=True)
class Value:
    """What the values of one field are.

    form: "int", "float", "text", "bytes"; "array" of one dtype and shape, "npy" of any; "list", a Python list of numbers, of any
    length; "object" for all else.
    """

    form: str
    dtype: str = ""  # NumPy's name; "bfloat16" too
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.form not in ("array", "npy"):
            lists = {"int64": "a list of int", "float64": "a list of float"}
            return {"text": "str", "object": "another object", "list": lists.get(self.dtype, "a list")}.get(self.form, self.form)
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" if self.form == "array" else "an array"


def torch_module() -> Any:
    """PyTorch where it is in use: an object of its kind is only there when it is."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> bool:
    torch = torch_module()
    return torch is not None and isinstance(value, torch.Tensor)


def is_picture(value: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def pixels_of(picture: Any) -> np.ndarray[Any, Any]:
    """(h, w), (h, w, 3) or (h, w, 4); palettes and other models as RGB."""
    modes = {"1": "L", "LA": "RGBA", "PA": "RGBA", "La": "RGBA", "I;16": "I;16", "I": "I", "F": "F"}
    mode = picture.mode if picture.mode in ("L", "RGB", "RGBA", "I;16", "I", "F") else modes.get(picture.mode, "RGB")
    return np.asarray(picture if picture.mode == mode else picture.convert(mode))


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Numbers of a value, with bfloat16 as uint16; None where it is no array. ``dtype_of`` tells which they are."""
    if is_tensor(value):
        torch = torch_module()
        if value.layout != torch.strided or value.is_quantized or str(value.dtype).removeprefix("torch.") not in (*NAMES, "bool"):
            return None
        value = value.detach().cpu().resolve_neg()
        if value.dtype == torch.bool:
            return value.view(torch.uint8).numpy()
        return (value.contiguous().view(torch.uint16) if value.dtype == torch.bfloat16 else value).numpy()
    if is_picture(value):
        return pixels_of(value)
    if isinstance(value, np.ma.MaskedArray):
        return None
    if isinstance(value, (np.ndarray, np.generic)) or type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        array = np.asarray(value)
    else:
        return None
    if array.dtype.name == "bfloat16":
        return array.view(np.uint16)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.name not in NAMES:
        return None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def dtype_of(value: Any, array: np.ndarray[Any, Any]) -> str:
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return "bfloat16" if name == "bfloat16" else array.dtype.name


def list_numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of a Python list that holds nothing else."""
    if not isinstance(value, list) or any(isinstance(v, (bool, str, bytes)) or v is None for v in value[:1]):
        return None
    try:
        array = np.asarray(value) if value else np.empty(0, np.int64)
    except (TypeError, ValueError, OverflowError):
        return None
    plain = array.ndim == 1 and array.dtype.name in ("int64", "float64")
    return array if plain and not any(isinstance(v, bool) for v in value) else None


def describe(value: Any) -> Value | None:
    """What a value is; None of one that is not there."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)):
        return Value("int")
    if isinstance(value, int):
        return Value("int" if value in _INT64 else "object")
    if isinstance(value, float) and type(value) in (float, np.float64):
        return Value("float")
    if isinstance(value, str):
        return Value("text" if encodes(value) else "object")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Value("bytes")
    array = as_array(value)
    if array is None:
        numbers = list_numbers(value)
        return Value("object") if numbers is None else Value("list", numbers.dtype.name if value else "")
    dtype = dtype_of(value, array)
    if array.ndim == 0 and array.dtype.kind in "iu" and dtype != "bfloat16" and int(array) in _INT64:
        return Value("int")
    if array.ndim == 0 and dtype == "float64":
        return Value("float")
    return Value("array", dtype, array.shape)


def both(a: Value | None, b: Value | None) -> Value | None:
    """What holds values of either kind."""
    if a is None or b is None or a == b:
        return a or b
    if {a.form, b.form} == {"int", "float"}:
        return Value("float")
    if a.form in ("array", "npy") and b.form in ("array", "npy"):
        return Value("npy", a.dtype if a.dtype == b.dtype else "")
    if a.form == b.form == "list":  # an empty one says nothing of the others
        return Value("list", max(a.dtype, b.dtype) if "" in (a.dtype, b.dtype) else "float64")
    return Value("object")


@dataclass
class Tree:
    """The parts of a sample: ``children`` by their keys, or what one value is."""

    kind: str  # "tuple", "dict", "names" (of a named tuple or a data class), "value"
    children: dict[Any, Tree] = field(default_factory=dict)
    value: Value | None = None

    def leaves(self, name: str = "") -> list[tuple[str, Tree]]:
        if self.kind == "value":
            return [(name or "0", self)]
        return [leaf for key, child in self.children.items() for leaf in child.leaves(f"{name}.{key}" if name else str(key))]


def parts_of(item: Any, top: bool = True) -> tuple[str, dict[Any, Any]] | None:
    """The kind of a sample and its parts by key; None of a single value."""
    if isinstance(item, Mapping):
        return "dict", dict(item)
    if not top:
        return None
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return "names", dict(zip(item._fields, item))
    if is_dataclass(item) and not isinstance(item, type):
        return "names", {f.name: getattr(item, f.name) for f in fields(item)}
    numbers = all(isinstance(v, (int, float)) for v in item) if isinstance(item, list) else False
    if isinstance(item, tuple) or (isinstance(item, list) and not numbers):
        return "tuple", dict(enumerate(item))
    return None


def tree_of(item: Any, top: bool = True) -> Tree:
    found = parts_of(item, top)
    if found is None:
        return Tree("value", value=describe(item))
    kind, parts = found
    return Tree(kind, {key: tree_of(part, top=False) for key, part in parts.items()})


def merged(a: Tree, b: Tree) -> Tree:
    """The sample that both are."""
    if a.kind != b.kind:
        for one, other in ((a, b), (b, a)):
            if one.kind == "value" and one.value is None:
                return other
        return Tree("value", value=Value("object"))
    if a.kind == "value":
        return Tree("value", value=both(a.value, b.value))
    if a.kind == "tuple" and len(a.children) != len(b.children):
        raise Mismatch(f"a sample has {len(a.children)} parts and another {len(b.children)}; let each return as many")
    keys = [*a.children, *(k for k in b.children if k not in a.children)]
    pairs = {k: (a.children.get(k), b.children.get(k)) for k in keys}
    return Tree(a.kind, {k: merged(x, y) if x and y else (x or y) for k, (x, y) in pairs.items()})  # type: ignore[misc]


_NPY = struct.Struct("<6sBBH")


def npy_bytes(array: np.ndarray[Any, Any], dtype: str) -> bytes:
    """A .npy file of the array."""
    descr = "<u2" if dtype == "bfloat16" else array.dtype.str
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(array.shape)!r}, }}"
    header += " " * (-(len(header) + 1 + _NPY.size) % 64) + "\n"
    return _NPY.pack(b"\x93NUMPY", 1, 0, len(header)) + header.encode() + np.ascontiguousarray(array).tobytes()


def as_float(number: Any, name: str) -> float:
    """A number among others that have fractions; one that would become another number is refused."""
    if hasattr(number, "item"):
        number = number.item()
    if not isinstance(number, float):
        number = operator.index(number)
        if int(float(number)) != number:
            raise Mismatch(f"field '{name}' is {number} here, which no float64 holds, and a number with a fraction elsewhere")
    return float(number)


def numbers_as(value: list[Any], name: str, dtype: str) -> np.ndarray[Any, Any]:
    """The numbers of a list, among lists of this type."""
    numbers = list_numbers(value)
    assert numbers is not None
    out = numbers.astype(dtype, copy=False)
    if out.dtype != numbers.dtype and not (out.astype(numbers.dtype) == numbers).all():
        raise Mismatch(f"field '{name}' has a whole number here that no float64 holds, and numbers with fractions elsewhere")
    return out


def convert(value: Any, name: str, wanted: Value) -> bytes | None:
    """A value as the engine takes it; None of one that is not there."""
    if value is None:
        return None
    if wanted.form == "object":
        try:
            return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as e:
            raise Mismatch(f"field '{name}' is a {type(value).__name__}, which cannot be pickled: {e}") from e
    found = describe(value)
    if found is None or both(wanted, found) != wanted:
        raise Mismatch(
            f"field '{name}' is {found} here and {wanted} in the samples that were looked at first; make them alike, or "
            "look at more of them: probe=1000"
        )
    if wanted.form in ("int", "float"):
        if wanted.form == "int":
            return struct.pack("<q", operator.index(value.item() if hasattr(value, "item") else value))
        return struct.pack("<d", as_float(value, name))
    if wanted.form == "text":
        return str(value).encode()
    if wanted.form == "bytes":
        return bytes(value)
    if wanted.form == "list":
        return npy_bytes(numbers_as(value, name, wanted.dtype), wanted.dtype)
    array = as_array(value)
    assert array is not None
    return np.ascontiguousarray(array).tobytes() if wanted.form == "array" else npy_bytes(array, found.dtype)


class Items:
    """What the samples of one object look like. Can be pickled."""

    def __init__(self, tree: Tree, owner: str) -> None:
        self.tree, self.owner = tree, owner
        self.leaves = tree.leaves()
        names = [name for name, _ in self.leaves]
        if not names:
            raise UsageError(f"{owner}: its samples are empty")
        for name in names:
            if names.count(name) > 1 or ";" in name or not name:
                raise UsageError(f"{owner}: a sample has a part named {name!r}, which no field can be: give it another name")
        for _, leaf in self.leaves:
            if leaf.value is None or leaf.value == Value("list"):  # None, or an empty list, in all that were looked at
                leaf.value = Value("object")
        self.values: list[Value] = [leaf.value for _, leaf in self.leaves if leaf.value is not None]
        self.names = names

    @property
    def objects(self) -> list[str]:
        return [name for name, value in zip(self.names, self.values) if value.form == "object"]

    @property
    def row_bytes(self) -> int:
        """What a sample takes, encoded; values of no fixed size are a guess."""
        sizes = [self._form(name, value, None).get("bytes", 64) for name, value in zip(self.names, self.values)]
        return 64 + sum(size + 16 for size in sizes)

    # -- of one sample: called by the engine ------------------------------------------------------

    def flatten(self, item: Any) -> list[Any]:
        """The values in the order of the fields, None for those that are missing."""
        if item is None:
            raise BadSample(f"{self.owner} returned None for the sample")
        out: list[Any] = []
        self._flatten(item, self.tree, "", out)
        return out

    def _flatten(self, item: Any, tree: Tree, name: str, out: list[Any]) -> None:
        if tree.kind == "value":
            out.append(item)
            return
        if item is None:
            out.extend([None] * len(tree.leaves()))
            return
        found = parts_of(item, top=tree is self.tree)
        if found is None or found[0] != tree.kind:
            raise Mismatch(
                f"{f'field {name!r}' if name else 'the sample'} is a {type(item).__name__} and in the samples that were looked "
                f"at first it was a {tree.kind if tree.kind != 'names' else 'structure'}; make them alike"
            )
        parts = found[1]
        unknown = [key for key in parts if key not in tree.children]
        if unknown or (tree.kind == "tuple" and len(parts) != len(tree.children)):
            what = f"{len(parts)} parts" if tree.kind == "tuple" else f"{unknown[0]!r}"
            raise Mismatch(
                f"the sample has {what}, unlike those that were looked at first; make them alike, or look at more of them: probe=1000"
            )
        for key, child in tree.children.items():
            self._flatten(parts.get(key), child, f"{name}.{key}" if name else str(key), out)

    def convert(self, value: Any, number: int) -> bytes | None:
        return convert(value, self.names[number], self.values[number])

    def missing(self, number: int) -> None:
        raise Missing(f"the sample has no field '{self.names[number]}'; where some lack it, say default=… or optional=True")

    def explain(self, error: BaseException) -> tuple[bool, str]:
        """Whether the sample is bad, and the words for it; they lead back to the exception."""
        if isinstance(error, Mismatch):
            return False, str(error)
        if isinstance(error, Missing):
            return True, str(error)
        if type(error) is BadSample and str(error).startswith(f"{self.owner} returned None"):
            return True, str(error)
        remember(error)
        hint = ""
        words = words_of(error)
        if type(error).__name__ == "ProgrammingError" and "same thread" in words:
            hint = (
                "; headrace reads in one thread of its own: open the connection in __getitem__, or with check_same_thread=False"
            )
        return isinstance(error, DataError), f"{self.owner}.__getitem__ raised {words}{hint}"

    # -- for the engine ---------------------------------------------------------------------------

    def schema(self) -> list[dict[str, Any]]:
        kinds = {"list": "npy", "object": "bytes"}
        return [
            {
                "name": name,
                "kind": kinds.get(value.form, value.form),
                "dtype": NAMES[value.dtype] if value.form == "array" else None,
                "shape": value.shape,
            }
            for name, value in zip(self.names, self.values)
        ]

    def encoder(self) -> dict[str, Any]:
        torch = torch_module()
        flat = self.tree.kind == "value" or all(child.kind == "value" for child in self.tree.children.values())
        shapes = {"value": "single", "tuple": "tuple", "dict": "dict"}
        texts = self.tree.kind != "dict" or all(isinstance(key, str) for key in self.tree.children)
        return {
            "item": shapes.get(self.tree.kind, "other") if flat and texts else "other",
            "flatten": self.flatten,
            "convert": self.convert,
            "missing": self.missing,
            "tensor": None if torch is None else torch.Tensor,
            "fields": [self._form(name, value, torch) for name, value in zip(self.names, self.values)],
        }

    @staticmethod
    def _form(name: str, value: Value, torch: Any) -> dict[str, Any]:
        out: dict[str, Any] = {"name": name, "form": value.form}
        if value.form == "array":
            brain = value.dtype == "bfloat16"
            numbers = np.dtype(np.uint16 if brain else value.dtype)
            out["numpy_dtype"] = None if brain else numbers
            out["torch_dtype"] = getattr(torch, value.dtype, None) if torch is not None else None
            out["shape"] = value.shape
            out["bytes"] = int(np.prod(value.shape, dtype=np.int64)) * numbers.itemsize
        return out
