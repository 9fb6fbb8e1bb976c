# SPDX-License-Identifier: Apache-2.0
"""What a batch holds: frameworks, types, layouts, and values of different sizes."""

from __future__ import annotations

import io
import json
from typing import Any

import headrace as hr
import ml_dtypes
import numpy as np
import pytest
import torch
from PIL import Image
from support import COUNT, Data

SIZE = (20, 28)  # height, width


def first(source: Any, fields: dict[str, hr.Field], batch: int = 6, **options: Any) -> hr.Batch:
    with hr.Loader(source, batch, fields, **{"shuffle": False, **options}) as loader:
        return next(iter(loader))


def pixels(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


# -- frameworks and types ----------------------------------------------------------------------------

TYPES = {
    "u8": (torch.uint8, np.uint8),
    "f16": (torch.float16, np.float16),
    "bf16": (torch.bfloat16, ml_dtypes.bfloat16),
    "f32": (torch.float32, np.float32),
}
SHAPES = {"NCHW": (6, 3, *SIZE), "NHWC": (6, *SIZE, 3)}


def picture(dtype: str, layout: str) -> hr.ImageField:
    return hr.image("jpg").resize(SIZE).cast(dtype).layout(layout)


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_torch_gets_tensors_of_the_type_and_layout_asked_for(data: Data, dtype: str, layout: str) -> None:
    image = first(data.tar, {"image": picture(dtype, layout)})["image"]
    assert isinstance(image, torch.Tensor)
    assert image.dtype == TYPES[dtype][0] and image.shape == SHAPES[layout] and image.device.type == "cpu"


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_gets_arrays_of_the_type_and_layout_asked_for(data: Data, dtype: str, layout: str) -> None:
    image = first(data.tar, {"image": picture(dtype, layout)}, output="numpy")["image"]
    assert type(image) is np.ndarray
    assert image.dtype == TYPES[dtype][1] and image.shape == SHAPES[layout] and image.flags["C_CONTIGUOUS"]


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_jax_gets_arrays_of_the_type_and_layout_asked_for(data: Data, dtype: str, layout: str) -> None:
    import jax

    image = first(data.tar, {"image": picture(dtype, layout)}, output="jax")["image"]
    assert isinstance(image, jax.Array)
    assert image.dtype == TYPES[dtype][1] and image.shape == SHAPES[layout]


@pytest.mark.parametrize("output", ["torch", "jax"])
def test_all_frameworks_get_the_same_values(data: Data, output: str) -> None:
    fields = {
        "u8": picture("u8", "NCHW"),
        "f32": picture("f32", "NHWC"),
        "f16": picture("f16", "NCHW"),
        "label": hr.scalar("cls"),
    }
    want, got = first(data.tar, fields, output="numpy"), first(data.tar, fields, output=output)
    for name in fields:
        assert np.array_equal(np.asarray(got[name]), want[name]), name


def test_bf16_is_f32_rounded(data: Data) -> None:
    fields = {
        "bf16": hr.image("jpg").resize(SIZE).normalize(hr.IMAGENET).cast("bf16"),
        "f32": hr.image("jpg").resize(SIZE).normalize(hr.IMAGENET),
    }
    batch = first(data.tar, fields)
    assert torch.equal(batch["bf16"], batch["f32"].to(torch.bfloat16))


def test_f16_is_f32_rounded(data: Data) -> None:
    fields = {
        "f16": hr.image("jpg").resize(SIZE).normalize(hr.IMAGENET).cast("f16"),
        "f32": hr.image("jpg").resize(SIZE).normalize(hr.IMAGENET),
    }
    batch = first(data.tar, fields)
    assert torch.equal(batch["f16"], batch["f32"].to(torch.float16))


def test_layouts_are_transposed_forms_of_one_picture(data: Data) -> None:
    batch = first(data.tar, {"a": picture("u8", "NCHW"), "b": picture("u8", "NHWC")})
    assert torch.equal(batch["a"].permute(0, 2, 3, 1), batch["b"])


def test_a_picture_is_u8_nchw_unless_told_otherwise(data: Data) -> None:
    image = first(data.tar, {"image": hr.image("jpg").resize(SIZE)})["image"]
    assert image.dtype == torch.uint8 and image.shape == SHAPES["NCHW"]


def test_a_cast_keeps_0_to_255(data: Data) -> None:
    batch = first(data.tar, {"u8": picture("u8", "NCHW"), "f32": picture("f32", "NCHW")})
    assert torch.equal(batch["u8"].float(), batch["f32"])


def test_normalized_pictures_are_f32(data: Data) -> None:
    assert first(data.tar, {"image": hr.image("jpg").resize(SIZE).normalize(hr.IMAGENET)})["image"].dtype == torch.float32


def test_gray_has_one_channel(data: Data) -> None:
    image = first(data.tar, {"image": hr.image("jpg", mode="L").resize(SIZE)})["image"]
    assert image.shape == (6, 1, *SIZE)


def test_jax_shares_memory_with_the_batch(data: Data) -> None:
    image = first(data.tar, {"image": hr.image("jpg").resize((64, 64)).cast("f32")}, output="jax")["image"]
    assert image.unsafe_buffer_pointer() % 64 == 0
    again = np.from_dlpack(image)
    assert again.__array_interface__["data"][0] == image.unsafe_buffer_pointer()


def test_the_device_moves_every_tensor(data: Data) -> None:
    fields = {"image": picture("u8", "NCHW"), "label": hr.scalar("cls")}
    batch = first(data.tar, fields, device="meta")
    assert {v.device.type for v in batch.values()} == {"meta"}


def test_the_device_moves_padded_ragged_and_listed_fields_too(data: Data) -> None:
    fields = {"p": hr.image("jpg").padded(), "r": hr.image("jpg").ragged(), "l": hr.image("jpg").list()}
    batch = first(data.tar, fields, device="meta")
    assert {t.device.type for v in batch.values() for t in v} == {"meta"}


def test_a_batch_is_a_tree_to_jax(data: Data) -> None:
    import jax

    batch = first(data.tar, {"image": picture("f32", "NCHW"), "label": hr.scalar("cls")}, output="jax")
    assert len(jax.tree_util.tree_leaves(batch)) == 2
    assert float(jax.jit(lambda b: b["image"].sum())(batch)) > 0


def test_a_batch_is_a_tree_to_torch(data: Data) -> None:
    import torch.utils._pytree as pytree

    batch = first(data.tar, {"image": picture("f32", "NCHW"), "label": hr.scalar("cls")})
    moved = pytree.tree_map(lambda t: t.to("meta"), batch)
    assert {t.device.type for t in moved.values()} == {"meta"}


def test_a_batch_rebuilt_by_a_wrapper_is_a_dict_all_the_same(data: Data) -> None:
    """As accelerate and Lightning do when they move a batch."""
    batch = first(data.tar, {"image": picture("f32", "NCHW"), "label": hr.scalar("cls")})
    moved = type(batch)({k: v.to("meta") for k, v in batch.items()})
    assert list(moved) == ["image", "label"]


def test_a_batch_can_be_sent_to_another_process(data: Data) -> None:
    import pickle

    batch = first(data.tar, {"image": picture("u8", "NCHW"), "key": hr.key()}, output="numpy")
    again = pickle.loads(pickle.dumps(batch))
    assert again["key"] == batch["key"] and np.array_equal(again["image"], batch["image"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_fails_at_construction(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="cuda"):
        hr.Loader(data.tar, 4, {"label": hr.scalar("cls")}, device="cuda")


# -- numbers, text, keys -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["tar", "folder", "pickle", "csv", "list", "jsonl"])
def test_a_label_is_an_int64_wherever_it_lies(data: Data, where: str) -> None:
    label = first(data.everywhere[where], {"label": hr.scalar("cls")}, batch=COUNT)["label"]
    assert label.dtype == torch.int64
    assert label.tolist() == [s.label for s in data.samples]


@pytest.mark.parametrize(("dtype", "want"), [("u8", np.uint8), ("i32", np.int32), ("f32", np.float32), ("f64", np.float64)])
@pytest.mark.parametrize("where", ["tar", "folder"])
def test_a_label_may_have_another_type(data: Data, where: str, dtype: str, want: Any) -> None:
    label = first(data.everywhere[where], {"label": hr.scalar("cls", dtype=dtype)}, output="numpy")["label"]
    assert label.dtype == want and label.tolist() == [s.label for s in data.samples[:6]]


def test_text_is_a_list_of_str(data: Data) -> None:
    assert first(data.tar, {"t": hr.text("txt")})["t"] == [s.text for s in data.samples[:6]]


@pytest.mark.parametrize("where", ["csv", "jsonl"])
def test_text_of_a_list_is_a_list_of_str(data: Data, where: str) -> None:
    assert first(data.everywhere[where], {"t": hr.text("caption")})["t"] == [s.text for s in data.samples[:6]]


def test_bytes_are_a_list_of_bytes(data: Data) -> None:
    for where in ("tar", "folder"):
        assert first(data.everywhere[where], {"b": hr.bytes("jpg")})["b"] == [s.jpeg for s in data.samples[:6]]


def test_json_is_parsed(data: Data) -> None:
    want = [{"key": s.key, "size": list(s.size)} for s in data.samples[:6]]
    assert first(data.tar, {"j": hr.json("json")})["j"] == want


def test_json_of_a_list_is_parsed(data: Data) -> None:
    assert first(data.jsonl, {"j": hr.json("size")})["j"] == [list(s.size) for s in data.samples[:6]]


@pytest.mark.parametrize("where", ["tar", "folder", "pickle", "csv", "list", "jsonl"])
def test_the_key_is_the_samples_name(data: Data, where: str) -> None:
    assert first(data.everywhere[where], {"k": hr.key()})["k"] == [s.key for s in data.samples[:6]]


def test_without_fields_everything_comes_as_it_lies(data: Data) -> None:
    batch = first(data.tar, None)  # type: ignore[arg-type]
    assert list(batch) == ["jpg", "cls", "json", "txt"]
    assert batch["jpg"] == [s.jpeg for s in data.samples[:6]]
    assert batch["cls"].tolist() == [s.label for s in data.samples[:6]]
    assert batch["txt"] == [s.text for s in data.samples[:6]]
    assert json.loads(batch["json"][0])["key"] == data.samples[0].key


def test_indices_are_int64_and_valid_is_bool(data: Data) -> None:
    batch = first(data.tar, {"k": hr.key()})
    assert batch.indices.dtype == np.int64 and batch.indices.tolist() == list(range(6))
    assert batch.valid.dtype == np.bool_ and batch.valid.all()


@pytest.mark.parametrize("what", [hr.text, hr.bytes, hr.image, hr.json])
def test_a_label_of_the_index_is_taken_as_a_number_or_not_at_all(data: Data, what: Any) -> None:
    with pytest.raises(hr.UsageError, match=r"field 't': 'cls' is a number.*hr\.scalar"):
        hr.Loader(data.folder, 4, {"t": what("cls")})


# -- different sizes ---------------------------------------------------------------------------------


def test_pictures_of_different_sizes_are_an_error_that_names_the_remedies(data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"'image'.*resize.*list\(\), \.padded\(\) or \.ragged\(\)"):
        hr.Loader(data.tar, 4, {"image": hr.image("jpg")})


def test_a_list_holds_each_picture_as_it_is(data: Data) -> None:
    images = first(data.tar, {"image": hr.image("jpg").layout("NHWC").list()}, output="numpy")["image"]
    for image, sample in zip(images, data.samples):
        assert np.array_equal(image, pixels(sample.jpeg))


def test_padded_pictures_come_with_their_sizes(data: Data) -> None:
    values, sizes = first(data.tar, {"image": hr.image("jpg").layout("NHWC").padded()}, output="numpy")["image"]
    want = [pixels(s.jpeg) for s in data.samples[:6]]
    assert sizes.dtype == np.int64 and sizes.tolist() == [list(w.shape) for w in want]
    assert values.shape == (6, *np.max([w.shape for w in want], axis=0))
    for value, w in zip(values, want):
        h, wide, _ = w.shape
        assert np.array_equal(value[:h, :wide], w)
        assert not value[h:].any() and not value[:, wide:].any()


def test_ragged_pictures_come_with_where_each_begins(data: Data) -> None:
    values, begins, sizes = first(data.tar, {"image": hr.image("jpg").layout("NHWC").ragged()}, output="numpy")["image"]
    assert begins.dtype == np.int64 and begins.shape == (7,) and begins[-1] == values.size
    for i, sample in enumerate(data.samples[:6]):
        assert np.array_equal(values[begins[i] : begins[i + 1]].reshape(sizes[i]), pixels(sample.jpeg))


def test_padded_planes_have_their_channels_first(data: Data) -> None:
    values, sizes = first(data.tar, {"image": hr.image("jpg").padded()}, output="numpy")["image"]
    for value, size, sample in zip(values, sizes, data.samples):
        assert np.array_equal(value[:, : size[1], : size[2]], pixels(sample.jpeg).transpose(2, 0, 1))


@pytest.mark.parametrize("output", ["torch", "numpy", "jax"])
def test_padded_bytes_are_u8_with_lengths(data: Data, output: str) -> None:
    values, lengths = first(data.tar, {"b": hr.bytes("jpg").padded()}, output=output)["b"]
    assert [int(n) for n in lengths] == [len(s.jpeg) for s in data.samples[:6]]
    assert values.shape == (6, max(len(s.jpeg) for s in data.samples[:6]))
    assert np.asarray(values[3])[: int(lengths[3])].tobytes() == data.samples[3].jpeg


@pytest.mark.parametrize("pad", [0, -100, -1, np.int64(7), 3.0])
@pytest.mark.parametrize("dtype", ["int16", "int64", "float16", "float32", "float64"])
def test_padding_is_the_number_asked_for_as_torch_pads(data: Data, dtype: str, pad: Any) -> None:
    def steps(v: int) -> np.ndarray:
        return np.arange(1, v + 2).astype(dtype)

    values, sizes = first(data.tar, {"x": hr.scalar("cls").map(steps).padded(value=pad)}, batch=COUNT)["x"]
    rows = [torch.from_numpy(steps(s.label)) for s in data.samples]
    want = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=float(pad))
    assert values.dtype == want.dtype and torch.equal(values, want)
    assert sizes.flatten().tolist() == [len(r) for r in rows] and len({len(r) for r in rows}) > 1


def test_padding_may_be_nan_or_unsigned_and_large(data: Data) -> None:
    def steps(v: int) -> np.ndarray:
        return np.arange(v + 1, dtype=np.uint64)

    field = hr.scalar("cls").map(steps)
    values, sizes = first(data.tar, {"x": field.padded(value=2**64 - 1)}, batch=COUNT, output="numpy")["x"]
    assert all((v[int(n) :] == 2**64 - 1).all() for v, n in zip(values, sizes))
    image = hr.image("jpg").cast("bf16").layout("NHWC").padded(value=float("nan"))
    values, sizes = first(data.tar, {"x": image}, output="numpy")["x"]
    for value, (h, w, _) in zip(values.astype(np.float32), sizes):
        assert np.isnan(value[h:]).all() and np.isnan(value[:, w:]).all() and not np.isnan(value[:h, :w]).any()


@pytest.mark.parametrize(
    ("field", "pad", "says"),
    [
        (hr.bytes("jpg"), -1, r"field 'x': the padding is -1 and the values are u8, which holds 0 to 255; .*cast"),
        (hr.image("jpg"), 0.5, "the padding is 0.5 and the values are u8"),
        (hr.image("jpg").cast("f16"), 70000, "the padding is 70000 and the values are f16, which does not hold it"),
        (hr.bytes("jpg"), 2**70, "64 bits"),
    ],
)
def test_padding_that_the_type_cannot_hold_is_refused(data: Data, field: hr.Field, pad: Any, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        hr.Loader(data.tar, 4, {"x": field.padded(value=pad)})


@pytest.mark.parametrize("pad", ["0", None, True, [1]])
def test_padding_is_a_number(pad: Any) -> None:
    with pytest.raises(hr.UsageError, match=r"padded\(value=.*the padding is a number"):
        hr.bytes("jpg").padded(value=pad)


def test_a_padded_field_says_what_it_is_padded_with() -> None:
    assert repr(hr.bytes("jpg").padded()) == "hr.bytes('jpg').padded()"
    assert repr(hr.bytes("jpg").padded(value=9)) == "hr.bytes('jpg').padded(value=9)"


@pytest.mark.parametrize("output", ["torch", "numpy", "jax"])
def test_ragged_text_is_its_utf8(data: Data, output: str) -> None:
    values, begins, _ = first(data.tar, {"t": hr.text("txt").ragged()}, output=output)["t"]
    texts = [np.asarray(values)[int(a) : int(b)].tobytes().decode() for a, b in zip(begins, begins[1:])]
    assert texts == [s.text for s in data.samples[:6]]


def test_a_shorter_side_needs_a_way_to_pack(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="different sizes"):
        hr.Loader(data.tar, 4, {"image": hr.image("jpg").resize(32)})
    images = first(data.tar, {"image": hr.image("jpg").resize(32).list()})["image"]
    assert all(min(i.shape[1:]) == 32 for i in images)


@pytest.mark.parametrize("packing", ["padded", "ragged"])
def test_an_empty_batch_has_as_many_axes_as_a_full_one(data: Data, packing: str) -> None:
    field = getattr(hr.image("jpg"), packing)()
    with hr.Loader(hr.open(data.tar)[:5], 1, {"image": field}, shuffle=False, rank=0, world_size=4, output="numpy") as loader:
        full, empty = loader
    assert len(empty.indices) == 0
    for a, b in zip(full["image"], empty["image"]):
        assert a.ndim == b.ndim and a.dtype == b.dtype
        assert a.ndim == 1 or a.shape[-1:] == b.shape[-1:] or packing == "padded"


def test_values_of_different_sizes_are_the_same_for_any_threads(data: Data) -> None:
    from support import digest

    fields = {"p": hr.image("jpg").padded(), "r": hr.bytes("jpg").ragged(), "l": hr.image("jpg").list(), "t": hr.text("txt")}
    digests = set()
    for threads in (1, 2, 7):
        with hr.Loader(data.tar, 7, fields, output="numpy", threads=threads) as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1


def test_one_field_may_be_delivered_in_several_ways(data: Data) -> None:
    batch = first(
        data.tar, {"raw": hr.bytes("jpg"), "small": hr.image("jpg").resize((8, 8)), "large": hr.image("jpg").resize((64, 64))}
    )
    assert batch["raw"][0] == data.samples[0].jpeg
    assert batch["small"].shape[-1] == 8 and batch["large"].shape[-1] == 64
