# SPDX-License-Identifier: Apache-2.0
"""Texts and chats tokenised while they are loaded, against what tokenizers and transformers give by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")

WORDS = [
    "the",
    "water",
    "of",
    "a",
    "river",
    "turns",
    "wheel",
    "after",
    "on",
    "its",
    "way",
    "down",
    "to",
    "sea",
    "and",
    "then",
    "it",
    "goes",
    "round",
    "again",
]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: What an answer is, said by the template, as transformers wants it.
MARKED = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['role'] == 'assistant' %}"
    "{% generation %}{{ m['content'] | trim }}<|im_end|>{% endgeneration %}\n{% else %}{{ m['content'] }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def texts(count: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 40))) for _ in range(count)]


def chats(count: int) -> list[list[dict[str, str]]]:
    """One to three turns, with a system's message before some, letters beyond ASCII and answers that repeat the question."""
    rng = np.random.default_rng(4)
    out = []
    for i, one in enumerate(texts(count)):
        chat = [{"role": "system", "content": "Be kind, naïve and brief."}] if i % 3 == 0 else []
        for _ in range(int(rng.integers(1, 4))):
            chat.append({"role": "user", "content": f"{one}? ✓"})
            chat.append({"role": "assistant", "content": f"{one}? ✓" if i % 5 == 0 else f" Überall {one[::-1]} 🌊 "})
        out.append(chat)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer as people download it: tokenizer.json, tokenizer_config.json."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["[UNK]", "<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, show_progress=False, initial_alphabet=alphabet
    )
    made.train_from_iterator(texts(200), trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    place = tmp_path_factory.mktemp("tokenizer")
    made.save(str(place / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": False, "rstrip": False},
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "chat_template": CHATML,
    }
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    return place


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("corpus") / "a.jsonl"
    lines = zip(texts(60), chats(60))
    place.write_text("".join(json.dumps({"text": t, "messages": c}) + "\n" for t, c in lines))
    return str(place)


def load(corpus: str, fields: dict[str, Any], **options: Any) -> list[hr.Batch]:
    given: dict[str, Any] = {"shuffle": False, "tail": "keep", "output": "numpy", "threads": 2, **options}
    with hr.Loader(corpus, 16, fields, **given) as loader:
        return list(loader.epoch(0))


def unpadded(value: Any) -> list[list[int]]:
    rows, lengths = value
    return [row[: int(n)].tolist() for row, n in zip(rows, np.asarray(lengths).reshape(-1))]


@pytest.mark.parametrize("special", [True, False])
def test_a_text_is_what_the_tokenizer_makes_of_it(corpus: str, folder: Path, special: bool) -> None:
    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    wanted = [made.encode(t, add_special_tokens=special).ids for t in texts(60)]
    batches = load(corpus, {"ids": hr.text("text").tokenize(folder, special=special)})
    assert [row for b in batches for row in unpadded(b["ids"])] == wanted
    rows, lengths = batches[0]["ids"]
    assert rows.dtype == np.int64 and rows.shape == (16, max(map(len, wanted[:16])))
    assert all((row[int(n) :] == 1).all() for row, n in zip(rows, np.asarray(lengths).reshape(-1)))  # <pad>


@pytest.mark.parametrize("truncate", ["right", "left"])
@pytest.mark.parametrize("how", ["padded", "ragged", "list", "fixed"])
def test_at_most_so_many_tokens(corpus: str, folder: Path, truncate: str, how: str) -> None:
    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    whole = [made.encode(t, add_special_tokens=False).ids for t in texts(60)]
    wanted = [ids[:12] if truncate == "right" else ids[-12:] for ids in whole]
    assert any(len(ids) > 12 for ids in whole) and any(len(ids) < 12 for ids in whole)
    options = {"truncate": truncate, "special": False, "dtype": "i32", "pad": 7, "fixed": how == "fixed"}
    field = hr.text("text").tokenize(folder / "tokenizer.json", 12, **options)
    if how in ("ragged", "list"):
        field = getattr(field, how)()
    batches = load(corpus, {"ids": field})
    if how == "fixed":
        rows = np.concatenate([b["ids"] for b in batches])
        assert rows.dtype == np.int32 and rows.tolist() == [ids + [7] * (12 - len(ids)) for ids in wanted]
    elif how == "list":
        assert [row.tolist() for b in batches for row in b["ids"]] == wanted
    elif how == "ragged":
        parts = [np.split(b["ids"][0], np.asarray(b["ids"][1])[1:-1]) for b in batches]
        assert [row.tolist() for some in parts for row in some] == wanted
    else:
        assert [row for b in batches for row in unpadded(b["ids"])] == wanted


def test_the_end_of_a_document_is_added(corpus: str, folder: Path) -> None:
    (batch, *_) = load(corpus, {"ids": hr.text("text").tokenize(folder, special=False, end=True)})
    assert all(row[-1] == 3 and 3 not in row[:-1] for row in unpadded(batch["ids"]))


@pytest.mark.parametrize("processes", [0, 2])
def test_chats_have_the_tokens_and_masks_of_transformers(corpus: str, folder: Path, processes: int) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    wanted = [
        theirs.apply_chat_template(chat, chat_template=MARKED, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        for chat in chats(60)
    ]
    field = hr.json("messages").chat(folder, template=MARKED, processes=processes)
    batches = load(corpus, {"ids": field})
    assert [row for b in batches for row in unpadded(b["ids"])] == [w["input_ids"] for w in wanted]
    assert [row for b in batches for row in unpadded(b["ids_loss_mask"])] == [w["assistant_masks"] for w in wanted]
    assert batches[0]["ids_loss_mask"][0].dtype == np.uint8


def test_a_template_that_marks_nothing_has_its_answers_found(corpus: str, folder: Path) -> None:
    """What follows "<|im_start|>assistant\\n", up to and with the end of the turn."""
    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    batches = load(corpus, {"ids": hr.json("messages").chat(folder)})
    rows = [row for b in batches for row in unpadded(b["ids"])]
    masks = [row for b in batches for row in unpadded(b["ids_loss_mask"])]
    for chat, ids, mask in zip(chats(60), rows, masks):
        text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in chat)
        assert ids == made.encode(text, add_special_tokens=False).ids
        answers = [f"{m['content']}<|im_end|>\n" for m in chat if m["role"] == "assistant"]
        said = made.decode([n for n, yes in zip(ids, mask) if yes], skip_special_tokens=False)
        assert made.decode(made.encode("".join(answers), add_special_tokens=False).ids, skip_special_tokens=False) == said


def test_tokenizers_of_transformers_bring_their_template(corpus: str, folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    by_object = load(corpus, {"ids": hr.json("messages").chat(theirs)})
    by_folder = load(corpus, {"ids": hr.json("messages").chat(folder)})
    for a, b in zip(by_object, by_folder):
        assert unpadded(a["ids"]) == unpadded(b["ids"]) and unpadded(a["ids_loss_mask"]) == unpadded(b["ids_loss_mask"])


def test_chats_of_one_length(corpus: str, folder: Path) -> None:
    (batch, *_) = load(corpus, {"ids": hr.json("messages").chat(folder, max_len=40, fixed=True, truncate="left", pad="<pad>")})
    assert batch["ids"].shape == batch["ids_loss_mask"].shape == (16, 40)
    assert ((batch["ids"] == 1) <= (batch["ids_loss_mask"] == 0)).all()


def test_other_tokenizers_in_threads_and_processes(corpus: str, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    sentencepiece = pytest.importorskip("sentencepiece")
    ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"the": 257}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300})
    (tmp_path / "corpus.txt").write_text("\n".join(texts(60)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "corpus.txt"), model_prefix=str(tmp_path / "sp"), vocab_size=35, minloglevel=2
    )
    made = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sp.model"))
    fields = {
        "t": hr.text("text").tokenize(encoding, special=False),
        "s": hr.text("text").tokenize(tmp_path / "sp.model", special=False),
    }
    assert fields["t"].called.processes == 0 and fields["s"].called.processes >= 1
    batches = load(corpus, fields)
    assert [row for b in batches for row in unpadded(b["t"])] == [encoding.encode_ordinary(t) for t in texts(60)]
    assert [row for b in batches for row in unpadded(b["s"])] == [made.encode(t) for t in texts(60)]


class Tokenizer:
    """As older versions of the package have it: without encode_batch_fast."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @classmethod
    def from_str(cls, text: str) -> Tokenizer:
        return cls(tokenizers.Tokenizer.from_str(text))

    def __getattr__(self, name: str) -> Any:
        if name in ("encode_batch_fast", "_inner"):
            raise AttributeError(name)
        return getattr(self._inner, name)


def test_an_older_package_of_tokenizers_gives_the_same(corpus: str, folder: Path) -> None:
    older = Tokenizer(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")))
    pairs = [
        (hr.text("text").tokenize(older), hr.text("text").tokenize(folder)),
        (hr.json("messages").chat(older, template=CHATML), hr.json("messages").chat(folder, template=CHATML)),
    ]
    for old, new in pairs:
        for a, b in zip(load(corpus, {"ids": old}), load(corpus, {"ids": new})):
            assert unpadded(a["ids"]) == unpadded(b["ids"])


def test_resumed_and_on_more_threads_it_is_the_same(corpus: str, folder: Path) -> None:
    field = {"ids": hr.text("text").tokenize(folder, max_len=9)}
    with hr.Loader(corpus, 7, field, seed=3, threads=1, output="numpy") as loader:
        batches = loader.epoch(0)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
        wanted = [unpadded(b["ids"]) for b in batches]
    with hr.Loader(corpus, 7, field, seed=3, threads=4, output="numpy") as loader:
        loader.load_state_dict(state)
        assert [unpadded(b["ids"]) for b in loader.epoch(0)] == wanted


def test_a_data_set_gives_them_too(corpus: str, folder: Path) -> None:
    ds = hr.open(corpus, {"ids": hr.json("messages").chat(folder)})
    assert set(ds[3]) == {"ids", "ids_loss_mask"} and ds[3]["ids"].shape == ds[3]["ids_loss_mask"].shape


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("hello", "a list of messages, not str"),
        ([], "an empty one"),
        ([{"content": "x"}], "message 0 is no object with a 'role'"),
        ([{"role": "user"}, 5], "message 1 is no object"),
    ],
)
def test_chats_that_are_none_are_bad_samples(tmp_path: Path, folder: Path, messages: Any, words: str) -> None:
    rows = [{"messages": json.dumps(chats(1)[0])}, {"messages": json.dumps(messages)}]
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"messages": [r["messages"] for r in rows]}), tmp_path / "a.parquet")
    with pytest.raises(hr.DataError, match=words):
        load(str(tmp_path / "a.parquet"), {"ids": hr.json("messages").chat(folder)})


def test_mistakes_are_named(folder: Path, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    bare = tmp_path / "tokenizer.json"
    bare.write_bytes((folder / "tokenizer.json").read_bytes())
    encoding = tiktoken.Encoding("t", pat_str=r".", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={})
    wide = tiktoken.Encoding("w", pat_str=r".", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={"x": 70000})
    text, chat = hr.text("text"), hr.json("messages")
    cases: list[tuple[Any, str]] = [
        (lambda: text.tokenize(tmp_path / "none.json"), "no such tokenizer"),
        (lambda: text.tokenize(folder, max_len=0), "max_len"),
        (lambda: text.tokenize(folder, fixed=True), "say max_len="),
        (lambda: text.tokenize(folder, truncate="middle"), "truncate"),
        (lambda: text.tokenize(folder, pad="<none>"), "no token '<none>'"),
        (lambda: text.tokenize(folder, dtype="f32"), "dtype"),
        (lambda: text.tokenize(wide, dtype="u16"), "does not hold the 70,001 numbers"),
        (lambda: text.tokenize(folder).tokenize(folder), "come first"),
        (lambda: text.tokenize(encoding, end=True), "no token that usually ends"),
        (lambda: chat.chat(bare), "no chat template beside it"),
        (lambda: chat.chat(folder, template="{% for %}"), "no Jinja"),
        (lambda: chat.chat(encoding, template=CHATML), "tokenizer of Hugging Face's"),
    ]
    for make, words in cases:
        with pytest.raises(hr.UsageError, match=words):
            make()


def test_a_template_whose_answers_cannot_be_found_is_refused(corpus: str, folder: Path) -> None:
    counting = "{{ messages | length }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    with pytest.raises(hr.UsageError, match="mark them in the template"):
        load(corpus, {"ids": hr.json("messages").chat(folder, template=counting)})


def test_roles_do_not_go_with_a_template_that_marks(folder: Path) -> None:
    for roles in ("user", ("assistant", "tool"), ()):
        with pytest.raises(hr.UsageError, match=r"roles=.*generation"):
            hr.json("messages").chat(folder, template=MARKED, roles=roles)
    hr.json("messages").chat(folder, template=MARKED, roles=["assistant"])


TOOLS = [{"type": "function", "function": {"name": "turn", "parameters": {"type": "object", "properties": {}}}}]
WITH_TOOLS = "{% if tools %}<|im_start|>tools\n{% for t in tools %}{{ t | tojson }}{% endfor %}<|im_end|>\n{% endif %}" + CHATML


def test_tools_go_to_the_template(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    made = transformers.AutoTokenizer.from_pretrained(folder)
    own = [{"name": "stop"}]
    some = chats(12)
    for tools, source, given in (
        (TOOLS, [{"c": c} for c in some], TOOLS),
        (own, [{"c": {"messages": c, "tools": own}} for c in some], TOOLS),
        (None, [{"c": {"messages": c, "tools": None}} for c in some], None),
    ):
        # A dict in a sample is its members: as a column it is one value.
        data = hr.from_python({"c": [row["c"] for row in source]})
        field = hr.json("c").chat(folder, template=WITH_TOOLS, tools=given)
        with hr.Loader(data, 12, {"ids": field}, shuffle=False, output="numpy") as loader:
            (batch,) = loader.epoch(0)
        options: dict[str, Any] = {"chat_template": WITH_TOOLS, "tokenize": True, "return_dict": True}
        assert unpadded(batch["ids"]) == [list(made.apply_chat_template(c, tools=tools, **options)["input_ids"]) for c in some]
        plain = [list(made.apply_chat_template(c, **options)["input_ids"]) for c in some]
        assert (unpadded(batch["ids"]) == plain) == (tools is None)
    with pytest.raises(hr.UsageError, match="tools is a list of dicts"):
        hr.json("c").chat(folder, tools="turn")  # type: ignore[arg-type]


def test_chats_of_python_objects(folder: Path, corpus: str) -> None:
    field = {"ids": hr.json("messages").chat(folder)}
    wanted = [row for b in load(corpus, field) for row in unpadded(b["ids"])]
    for source in ({"messages": chats(60)}, [{"messages": c} for c in chats(60)]):
        batches = load(hr.from_python(source), field)  # type: ignore[arg-type]
        assert [row for b in batches for row in unpadded(b["ids"])] == wanted


def test_lists_of_structs_are_no_json(folder: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    place = tmp_path / "chats.parquet"
    pq.write_table(pa.table({"messages": chats(5)}), place)
    with pytest.raises(hr.UsageError, match=r"columns messages\.role, messages\.content.*from_python\(pyarrow"):
        hr.Loader(str(place), 2, {"ids": hr.json("messages").chat(folder)})
    ds = hr.from_python(pq.read_table(place))
    with hr.Loader(ds, 5, {"ids": hr.json("messages").chat(folder)}, shuffle=False, output="numpy") as loader:
        (batch,) = loader.epoch(0)
    assert all(len(row) > 4 for row in unpadded(batch["ids"]))


def test_the_end_and_the_padding_are_those_of_the_tokenizers_own_settings(tmp_path: Path) -> None:
    vocabulary = {"a": 0, "</s>": 1, "<pad>": 2, "<end>": 3, "<fill>": 4, "<unk>": 5}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.save(str(tmp_path / "tokenizer.json"))
    texts_ = hr.from_python({"text": ["a a", "a"]})

    def numbers(tokenizer: Any) -> list[list[int]]:
        with hr.Loader(texts_, 2, {"i": hr.text("text").tokenize(tokenizer, end=True)}, shuffle=False) as loader:
            (batch,) = loader.epoch(0)
        return batch["i"][0].tolist()

    assert numbers(tmp_path) == [[0, 0, 1], [0, 1, 2]]
    settings = {"eos_token": "<end>", "pad_token": {"content": "<fill>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    assert numbers(tmp_path) == numbers(tmp_path / "tokenizer.json") == [[0, 0, 3], [0, 3, 4]]
    written = hr.tokenize(texts_, tmp_path / "tokens", tokenizer=tmp_path / "tokenizer.json")
    assert written["end_of_document"] == 3
    transformers = pytest.importorskip("transformers")
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<fill>")
    assert numbers(own) == [[0, 0, 3], [0, 3, 4]]
