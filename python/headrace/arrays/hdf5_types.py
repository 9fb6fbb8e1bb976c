# SPDX-License-Identifier: Apache-2.0
"""Types of HDF5 as columns: what of an element's bytes is a number, a text or a reference to a value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

#: (sign, exponent, exponent bits, mantissa, mantissa bits) and bias of the IEEE types by their bytes.
_FLOATS = {
    2: ((15, 10, 5, 0, 10), 15),
    4: ((31, 23, 8, 0, 23), 127),
    8: ((63, 52, 11, 0, 52), 1023),
}


@dataclass(frozen=True)
class Column:
    """A part of every element. ``why``: the engine cannot read it, and that is the reason."""

    path: tuple[str, ...] = ()  # of the member; () for the whole element
    offset: int = 0
    kind: str = "array"  # array, bytes or text
    dtype: str = ""
    big_endian: bool = False
    inner: tuple[int, ...] = ()  # axes within the element
    text_end: str = ""
    #: Bytes of an element of a value of variable length; 0: it has none.
    item_bytes: int = 0
    why: str = ""

    @property
    def name(self) -> str:
        return ".".join(self.path)


class Types:
    """The types of one file; addresses in it have ``address_bytes``."""

    def __init__(self, h5py: Any, address_bytes: int) -> None:
        self.h5t = h5py.h5t
        self.reference_bytes = 4 + address_bytes + 4

    def stored_bytes(self, tid: Any) -> int:
        """Of an element in the file. h5py tells those in memory, where values of variable length are pointers."""
        t = self.h5t
        kind = tid.get_class()
        if self._varies(tid):
            return self.reference_bytes
        if kind == t.COMPOUND:
            members = [tid.get_member_type(i) for i in range(tid.get_nmembers())]
            return int(tid.get_size()) + sum(self.stored_bytes(m) - m.get_size() for m in members)
        if kind == t.ARRAY:
            return math.prod(tid.get_array_dims()) * self.stored_bytes(tid.get_super())
        return int(tid.get_size())

    def columns(self, tid: Any) -> Iterator[Column]:
        """One for each member of a compound type, nested ones too; one for any other."""
        if tid.get_class() != self.h5t.COMPOUND:
            yield self._column(tid)
            return
        places = sorted((tid.get_member_offset(i), i) for i in range(tid.get_nmembers()))
        moved = 0
        for offset, i in places:
            member = tid.get_member_type(i)
            name = tid.get_member_name(i).decode(errors="replace")
            for column in self.columns(member):
                yield replace(column, path=(name, *column.path), offset=offset + moved + column.offset)
            moved += self.stored_bytes(member) - member.get_size()

    def _varies(self, tid: Any) -> bool:
        t = self.h5t
        return tid.get_class() == t.VLEN or (tid.get_class() == t.STRING and bool(tid.is_variable_str()))

    def _column(self, tid: Any) -> Column:
        t = self.h5t
        kind = tid.get_class()
        if kind == t.STRING:
            if tid.is_variable_str():
                return Column(kind="text", dtype="u8", item_bytes=1)
            ends = {t.STR_NULLTERM: "first nul", t.STR_NULLPAD: "nuls", t.STR_SPACEPAD: "blanks"}
            return Column(kind="text", dtype="u8", inner=(int(tid.get_size()),), text_end=ends.get(tid.get_strpad(), "nuls"))
        if kind == t.VLEN:
            element = self._number(tid.get_super())
            if element.why:
                return Column(why=f"its values of variable length are no plain numbers: {element.why}")
            of_bytes = element.dtype == "u8"
            return replace(element, kind="bytes" if of_bytes else "array", item_bytes=int(tid.get_super().get_size()))
        if kind == t.ARRAY:
            element = self._number(tid.get_super())
            return replace(element, inner=tuple(int(n) for n in tid.get_array_dims()))
        return self._number(tid)

    def _number(self, tid: Any) -> Column:
        t = self.h5t
        kind = tid.get_class()
        if kind == t.ENUM:  # NumPy's bool among them
            column = self._number(tid.get_super())
            return replace(column, dtype="u8") if not column.why and tid.dtype.kind == "b" else column
        if kind not in (t.INTEGER, t.FLOAT, t.BITFIELD):
            return Column(why=f"its type is {_described(tid)}; numbers are wanted")
        size = tid.get_size()
        big = size > 1 and tid.get_order() == t.ORDER_BE
        if kind == t.BITFIELD:  # PyTables' bools among them; h5py says nothing of how many bits count
            return (
                Column(dtype=f"u{8 * size}", big_endian=big)
                if size in (1, 2, 4, 8)
                else Column(why=f"it has {size} bytes of bits")
            )
        if kind == t.FLOAT:
            plain = size in _FLOATS and (tid.get_fields(), tid.get_ebias()) == _FLOATS[size] and tid.get_order() in (0, 1)
            name = f"f{8 * size}"
        else:
            plain = size in (1, 2, 4, 8) and tid.get_precision() == 8 * size and tid.get_offset() == 0
            name = f"{'i' if kind == t.INTEGER and tid.get_sign() == t.SGN_2 else 'u'}{8 * size}"
        if not plain:
            return Column(why=f"its numbers have {tid.get_precision()} bits of {8 * size} in an order of their own")
        return Column(dtype=name, big_endian=big)


def _described(tid: Any) -> str:
    try:
        return str(tid.dtype)
    except (TypeError, ValueError, NotImplementedError):
        return f"class {tid.get_class()} of HDF5"
