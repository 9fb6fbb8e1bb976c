# SPDX-License-Identifier: Apache-2.0
"""What to make of a field: ``hr.image("jpg").random_resized_crop(224).random_flip()``.

A field is a description and does nothing by itself; the engine checks it when a Loader or a
data set is made, before any data moves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._steps import ImageSteps
from .array_fields import ArrayField as ArrayField
from .array_fields import ColumnsField as ColumnsField
from .array_fields import Starts as Starts
from .array_fields import Stats as Stats
from .array_fields import array as array
from .array_fields import columns as columns
from .errors import UsageError
from .field import Field as Field
from .field import Self
from .habits import renamed

#: Mean and standard deviation of ImageNet's pixels (values/255), for ``normalize``.
IMAGENET: tuple[tuple[float, ...], tuple[float, ...]] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


#: Names of torchvision's transforms that are no steps of ours, and what to write instead.
_TORCHVISION = {
    "to_tensor": 'batches are tensors already: leave it out, or say .cast("f32") or .normalize(hr.IMAGENET)',
    "convert_image_dtype": 'say .cast("f32")',
    "transform": "name the steps, .resize(256).center_crop(224), or give a function: .map(function)",
    "transforms": "name the steps, .resize(256).center_crop(224), or give a function: .map(function)",
    "compose": "steps follow each other: .resize(256).center_crop(224)",
}


class ImageField(ImageSteps):
    """A picture. Without ``cast`` and ``layout``: u8, NCHW."""

    if not TYPE_CHECKING:  # a type checker must go on to find what is not there

        def __getattr__(self, name: str) -> Any:
            """Only for names that are not there: what users of torchvision type by habit is answered."""
            if name.startswith("_"):
                raise AttributeError(name)
            snake = "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
            answer = _TORCHVISION.get(snake) or (f"say .{snake}(…)" if hasattr(type(self), snake) else "")
            raise AttributeError(f"hr.image(…) has no step '{name}'" + (f": {answer}" if answer else ""), name=name, obj=self)

    def random_horizontal_flip(self: Self, p: float = 0.5) -> Self:
        """``random_flip``, as torchvision calls it: the same step and the same draws."""
        return self._step("random_flip", p=p)

    def normalize(self: Self, mean: Any, std: Any = None) -> Self:
        """``(value/255 - mean) / std`` as f32; ``normalize(hr.IMAGENET)`` gives both, and so does ``normalize(stats["image"])``
        of ``stats = hr.stats("photos")``, or the path of the JSON that ``headrace stats --to`` writes."""
        if std is None and isinstance(mean, (Mapping, str, os.PathLike)):
            from .picture_stats import mean_and_std

            mean, std = mean_and_std(mean, self.field)
        elif std is None:
            try:
                mean, std = mean
                len(mean), len(std)
            except (TypeError, ValueError):
                raise UsageError(
                    "normalize takes mean and std: normalize(hr.IMAGENET) or normalize(mean=(...), std=(...))"
                ) from None
        return self._step("normalize", mean=mean, std=std)


@renamed(views="variants")
def image(
    field: str,
    *,
    mode: str = "RGB",
    fast: bool = False,
    strict: bool = True,
    orient: bool = False,
    variants: int = 1,
    layout: str | None = None,
    shape: Sequence[int] | None = None,
    many: bool = False,
    default: Any = None,
    optional: bool = False,
) -> ImageField:
    """A picture, decoded: JPEG, PNG and WebP by headrace, what else Pillow opens by Pillow, slowly.
    Or a picture as numbers: u8 arrays and ``.npy`` files of shape (h, w), (h, w, 1), (h, w, 3) or (h, w, 4).

    ``mode``: "RGB", "L" (gray) or "RGBA"; whatever is stored becomes that as Pillow's ``convert`` does it.
    "P" takes the numbers as they are stored, palette indices or gray values, and refuses colours.

    ``fast``: JPEGs may be decoded at a half, a quarter or an eighth of their size where that suffices,
    which changes pixels a little.

    ``strict``: damage that the decoder notices is an error. With ``strict=False`` a damaged JPEG or a
    PNG with a wrong checksum is taken as far as it goes, and ``loader.stats()["damaged"]`` counts it.

    ``orient``: turns the picture as its EXIF says, before all other steps. Off, as in torchvision.

    ``variants``: so many differently augmented results of one decoded picture, [variants,c,h,w] a sample;
    several image fields of the same stored field share one decode too.

    ``layout``: of pictures that are arrays, "HWC" or "CHW", the channels first. ``shape``: of pictures that are
    plain bytes, which they do not say themselves: ``shape=(32, 32, 3)``; -1 once, where the length tells.

    ``many``: a sample may have any number of pictures, none among them; each is a list. Random steps
    draw for each picture by itself. ``.ragged()`` makes one tensor of all of them, see there.

    ``default``: the picture of samples that have none: a level from 0 to 255, one for each channel, or a u8 array [h, w, c];
    ``normalize``, ``cast`` and ``layout`` follow, and of an array all steps. ``optional``: as for ``hr.scalar``.
    """
    raw = {k: v for k, v in (("layout", layout), ("shape", shape)) if v is not None}
    out = ImageField("image", field, mode=mode, fast=fast, strict=strict, orient=orient, variants=variants, **raw)
    return out._as("array", many, default, optional)


def scalar(field: str, dtype: Any = None, *, many: bool = False, default: float | None = None, optional: bool = False) -> Field:
    """A number: decimal digits, a label of the index, or an array of one element.

    int64 or float64, whatever width the data hold, unless ``dtype`` says otherwise. ``many``: as for ``hr.array``.

    A sample without the field is bad data, unless there is a ``default``, which it then gets, or the field is
    ``optional``: then a batch has ``NAME_valid`` too, one bool a sample, and zeros (an empty text, an empty list) for those
    that lack it; ``ds[i]`` has ``None``. With both, those that lack it get the default, and ``NAME_valid`` tells. ``.map``
    functions get the default, and never see what is missing without one.
    """
    out = Field("scalar", field, **({} if dtype is None else {"dtype": dtype}))
    return out._as("array", many, default, optional)


class TextField(Field):
    """Text."""

    def tokenize(
        self: Self,
        tokenizer: Any,
        max_len: int | None = None,
        *,
        truncate: str = "right",
        special: bool = True,
        end: bool = False,
        fixed: bool = False,
        pad: int | str | None = None,
        dtype: Any = "i64",
        processes: int | str = "auto",
    ) -> Self:
        """The numbers of the text's tokens, as ``hr.tokenize`` would write them, made while loading.

        A batch holds (numbers filled up to the longest, lengths), as ``.padded()`` gives it; ``.ragged()`` and ``.list()``
        give these. ``fixed=True``: every sample is filled up to ``max_len``, and a batch is one array [B, max_len].

        tokenizer: as for ``hr.tokenize``. max_len: at most so many tokens; ``truncate``: the end that is cut off, "right" or
        "left". special: with what the tokenizer puts around a text ([CLS], <s>). end: with its end of a document.
        pad: what rows are filled up with, a number or a token; the tokenizer's usual one unless given, or 0.
        processes: "auto" runs on the engine's threads where the tokenizer frees the GIL (Hugging Face's, tiktoken), else in
        as many processes as there are cores; 0, or a number of processes.
        """
        from .tokenizing.on_the_fly import tokenized

        return tokenized(self, tokenizer, max_len, truncate, special, end, fixed, pad, dtype, processes)


class JsonField(Field):
    """A JSON value."""

    def chat(
        self: Self,
        tokenizer: Any,
        max_len: int | None = None,
        *,
        template: Any = None,
        roles: str | Sequence[str] = "assistant",
        tools: list[dict[str, Any]] | None = None,
        truncate: str = "right",
        fixed: bool = False,
        pad: int | str | None = None,
        dtype: Any = "i64",
        processes: int | str = "auto",
    ) -> Self:
        """A chat, ``[{"role": "user", "content": "…"}, …]``, through the tokenizer's chat template, as numbers.

        Besides NAME a batch has NAME_loss_mask, u8, of the same shape: 1 for the tokens of the assistant's answers, 0
        for all others. Both are packed as ``TextField.tokenize`` says.

        tokenizer: a folder with ``tokenizer.json`` and ``tokenizer_config.json`` or ``chat_template.jinja``, a tokenizer of
        transformers, or any of Hugging Face's with ``template=``, a text or the path of a file. Answers are what the
        template puts between ``{% generation %}`` and ``{% endgeneration %}``; of a template without these, what follows
        the prompt for an answer. roles: whose messages count, where the template does not mark them. tools: for the template,
        of every chat; a chat may bring its own, ``{"messages": […], "tools": […]}``.
        """
        from .tokenizing.on_the_fly import chatted

        return chatted(self, tokenizer, max_len, truncate, template, roles, tools, fixed, pad, dtype, processes)


def text(field: str, *, many: bool = False, default: str | None = None, optional: bool = False) -> TextField:
    """UTF-8 text as ``str``, a list in a batch. ``many``: as for ``hr.array``; ``default``, ``optional``: as for ``hr.scalar``.
    ``.tokenize("tokenizer.json", max_len=2048)`` gives numbers."""
    return TextField("text", field)._as("text", many, default, optional)


def bytes_(field: str, *, many: bool = False, default: bytes | None = None, optional: bool = False) -> Field:
    """The bytes as they lie, a list in a batch; ``.ragged()`` and ``.padded()`` give u8 arrays.
    Large values are a subclass of ``bytes`` in the memory that they were read into, uncopied.
    ``many``: as for ``hr.array``; ``default``, ``optional``: as for ``hr.scalar``."""
    return Field("bytes", field)._as("bytes", many, default, optional)


def json_(field: str, *, many: bool = False, default: Any = None, optional: bool = False) -> JsonField:
    """A JSON value, parsed; a list in a batch. ``many``: as for ``hr.array``; ``default``, ``optional``: as for ``hr.scalar``,
    and ``None`` for those that are missing. ``.chat("tokenizer folder")`` gives the tokens of messages."""
    return JsonField("json", field)._as("json", many, default, optional)


def key() -> Field:
    """The sample's key: its name in the tar or folder."""
    return Field("key", "")._as("text", False, None, False)
