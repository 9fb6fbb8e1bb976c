# SPDX-License-Identifier: Apache-2.0
"""Parquet as strangers bring it: encrypted columns, footers that lie, types that no field holds, lists of lists."""

from __future__ import annotations

import base64
import decimal
import pathlib
import random
import subprocess
import sys
from typing import Any

import headrace as hr
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def encrypted(path: pathlib.Path, table: Any, columns: list[str], plain: bool) -> None:
    pe = pytest.importorskip("pyarrow.parquet.encryption")

    class Kms(pe.KmsClient):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            pe.KmsClient.__init__(self)

        def wrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, wrapped: bytes, master: str) -> bytes:
            return base64.b64decode(wrapped)

    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": columns}, plaintext_footer=plain)
    keys = pe.CryptoFactory(Kms).file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(path, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)


def opened(path: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which must not end by a signal."""
    code = "import sys, headrace as hr\ntry: print(len(hr.open(sys.argv[1])))\nexcept hr.Error as e: print(type(e).__name__, e)"
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("plain", [True, False])
def test_encrypted_columns_are_named_and_end_no_process(tmp_path: pathlib.Path, plain: bool) -> None:
    table = pa.table({"a": range(50), "b": [f"t{i}" for i in range(50)], "c": pa.array([{"d": 1}] * 50)})
    encrypted(tmp_path / "x.parquet", table, ["b", "c.d"], plain)
    done = opened(tmp_path / "x.parquet")
    assert done.returncode == 0, done.stderr
    words = "columns are encrypted ('b', 'c.d')" if plain else "an encrypted Parquet file"
    assert done.stdout.startswith("Unsupported") and words in done.stdout and "x.parquet" in done.stdout


# -- Thrift's compact protocol, enough to write a footer anew --------------------------------------


def varint(n: int) -> bytes:
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def zigzag(n: int) -> bytes:
    return varint((n << 1) ^ (n >> 63) if n >= 0 else ((-n) << 1) - 1)


def with_footer(path: pathlib.Path, change: Any) -> None:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = change(data[-8 - length : -8])
    path.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_negative_counts_are_damage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array(range(1234567 // 1000))}), path, compression="none", use_dictionary=False)
    rows = zigzag(1234)

    def negative(footer: bytes) -> bytes:
        assert footer.count(rows) >= 3  # of the file, the row group and the column
        return footer.replace(rows, zigzag(-1234))

    with_footer(path, negative)
    with pytest.raises(hr.DataError, match=r"x.parquet, offset \d+: Parquet footer: -1234 (rows|values)") as e:
        hr.open(path)
    assert "cast" not in str(e.value)


def test_rows_that_do_not_add_up_are_damage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array(range(1234))}), path)
    with_footer(path, lambda footer: footer.replace(zigzag(1234), zigzag(1235), 1))
    with pytest.raises(hr.DataError, match=r"1235 rows, and 1234 in its row groups"):
        hr.open(path)


def test_any_damage_of_the_footer_ends_no_process(tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"a": range(20), "b": [f"t{i}" for i in range(20)]}), tmp_path / "x.parquet", row_group_size=5)
    code = (
        "import random, sys, headrace as hr\n"
        "data = open(sys.argv[1], 'rb').read(); rng = random.Random(3); bad = 0\n"
        "length = int.from_bytes(data[-8:-4], 'little')\n"
        "for n in range(400):\n"
        "    new = bytearray(data)\n"
        "    for _ in range(rng.randint(1, 3)): new[-8 - rng.randint(1, length)] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])\n"
        "    path = f'{sys.argv[1]}.{n}.parquet'; open(path, 'wb').write(new)\n"
        "    try:\n"
        "        for s in hr.open(path): pass\n"
        "    except hr.Error: bad += 1\n"
        "print(bad)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.parquet")], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100


# -- types --------------------------------------------------------------------------------------


def test_columns_that_no_field_holds_are_said_in_words(tmp_path: pathlib.Path) -> None:
    table = pa.table(
        {
            "d": pa.array([decimal.Decimal("1.25")], pa.decimal128(4, 2)),
            "nothing": pa.nulls(1),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(hr.Unsupported, match="no column that a field can hold") as e:
        hr.open(tmp_path / "x.parquet")
    for words in ("'d' is a decimal(4,2)", "'nothing' is nothing but nulls", "'m' is a map"):
        assert words in str(e.value)
    pq.write_table(table.append_column("n", pa.array([7])), tmp_path / "y.parquet")
    ds = hr.open(tmp_path / "y.parquet")
    assert dict(ds[0]) == {"n": 7}
    assert not any("d:4" in n for n in ds.notices)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()])
def test_lists_of_lists_are_several_arrays(tmp_path: pathlib.Path, kind: Any) -> None:
    rng = random.Random(0)
    rows: list[Any] = [
        [[rng.randint(0, 1) for _ in range(rng.randint(0, 4))] for _ in range(rng.randint(0, 3))] for _ in range(40)
    ]
    as_type = {"bool": bool, "float": float, "double": float}.get(str(kind), int)
    rows = [[[as_type(v) for v in inner] for inner in row] for row in rows]
    table = pa.table({"x": pa.array(rows, pa.list_(pa.list_(kind))), "n": range(40)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7)
    want = table["x"].to_pylist()
    ds = hr.open(tmp_path / "x.parquet")
    for i, sample in enumerate(ds):
        assert [v.tolist() for v in sample["x"]] == want[i]  # truths are 0 and 1
    with hr.Loader(
        tmp_path / "x.parquet", 8, {"x": hr.array("x", many=True), "n": hr.scalar("n")}, seed=1, output="numpy"
    ) as loader:
        for batch in loader:
            for n, lists in zip(batch["n"], batch["x"]):
                assert [len(v) for v in lists] == [len(v) for v in want[int(n)]]


def test_lists_of_lists_are_those_of_an_arrow_file(tmp_path: pathlib.Path) -> None:
    table = pa.table({"x": pa.array([[[1, 2], [3]], [], [[]], [[4], [5, 6, 7]]], pa.list_(pa.list_(pa.float32())))})
    pq.write_table(table, tmp_path / "x.parquet")
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    a, b = hr.open(tmp_path / "x.parquet"), hr.open(tmp_path / "x.arrow")
    assert a.schema == b.schema
    for one, other in zip(a, b):
        assert [v.tolist() for v in one["x"]] == [v.tolist() for v in other["x"]]
