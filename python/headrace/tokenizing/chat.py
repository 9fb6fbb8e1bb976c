# SPDX-License-Identifier: Apache-2.0
"""Chat templates: messages become one text, and where in it the assistant speaks is known.

A template is Jinja's, as ``tokenizer_config.json`` or ``chat_template.jinja`` beside a tokenizer has it. Where it marks
what the assistant says by ``{% generation %} … {% endgeneration %}``, as transformers reads it, these places count. Where
it does not, they are found by writing the chat once more without each answer: an answer is what comes after the prompt
for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadSample, UsageError
from .encoders import settings_beside, token_text

_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")

Span = tuple[int, int]


class Template:
    """Text of a template, and the special tokens that it may name. Goes over to other processes as this."""

    def __init__(self, text: str, tokens: Mapping[str, str]) -> None:
        self.text, self.tokens = text, dict(tokens)
        self._compiled: Any = None
        self._environment()  # now, so that what is wrong is said now

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "tokens": self.tokens, "_compiled": None}

    @property
    def marks(self) -> bool:
        return "generation" in self.text and "endgeneration" in self.text

    def render(self, chat: Any, roles: Sequence[str], tools: Any = None) -> tuple[str, list[Span]]:
        """The chat as text, and from where to where those of ``roles`` speak. A template that marks answers knows better.

        A chat is a list of messages, or a dict with them and more for the template: ``{"messages": […], "tools": […]}``."""
        more = {} if tools is None else {"tools": tools}
        if isinstance(chat, dict) and "messages" in chat:
            more |= {name: value for name, value in chat.items() if name != "messages" and value is not None}
            chat = chat["messages"]
        check_messages(chat)
        text, spans = self._render(chat, False, more)
        if self.marks:
            return text, spans
        return text, [self._span(chat, i, text, more) for i, m in enumerate(chat) if m["role"] in roles]

    def _span(self, messages: Any, i: int, text: str, more: dict[str, Any]) -> Span:
        prompt, _ = self._render(messages[:i], messages[i]["role"] == "assistant", more)
        until, _ = self._render(messages[: i + 1], False, more)
        if not until.startswith(prompt) or not text.startswith(until):
            raise UsageError(
                "the chat template writes earlier messages otherwise once more follow, so that answers cannot be found in its text: "
                "mark them in the template by {% generation %} … {% endgeneration %}, and give it as template="
            )
        return len(prompt), len(until)

    def _render(self, messages: Any, prompt: bool, more: dict[str, Any]) -> tuple[str, list[Span]]:
        import jinja2

        if not messages and not prompt:
            return "", []
        template = self._environment()
        try:
            return template.render(**{**self.tokens, **more, "messages": messages, "add_generation_prompt": prompt})
        except (jinja2.TemplateError, TypeError, KeyError, IndexError, ValueError) as e:
            if isinstance(e, UsageError):
                raise
            raise BadSample(f"the chat template refuses these messages: {e}") from None

    def _environment(self) -> Any:
        if self._compiled is None:
            from .chat_environment import compiled

            self._compiled = compiled(self.text)
        return self._compiled


def check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise BadSample(f"a chat is a list of messages, not {type(messages).__name__ if messages else 'an empty one'}")
    for n, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadSample(f"message {n} is no object with a 'role'")


def template_of(tokenizer: Any, given: Any) -> Template:
    """``template=``: a text, or the path of a file; else what lies beside the tokenizer, or what it has."""
    if not isinstance(tokenizer, (str, os.PathLike)):
        found = given if given is not None else getattr(tokenizer, "chat_template", None)
        tokens = {name: str(value) for name in _SPECIAL if (value := getattr(tokenizer, name, None)) is not None}
    else:
        place = os.fspath(tokenizer)
        folder = place if os.path.isdir(place) else os.path.dirname(place) or "."
        beside = _beside(folder)
        found = given if given is not None else beside.get("chat_template")
        tokens = {name: value for name in _SPECIAL if (value := token_text(beside.get(name))) is not None}
    if isinstance(found, list):  # several, each with a name
        found = {t["name"]: t["template"] for t in found}
    if isinstance(found, Mapping):
        found = found.get("default")
    if isinstance(found, os.PathLike) or (isinstance(found, str) and "{" not in found and os.path.exists(found)):
        with open(found, encoding="utf-8") as f:
            found = f.read()
    if not isinstance(found, str):
        raise UsageError(
            "the tokenizer has no chat template beside it (chat_template.jinja, or in tokenizer_config.json): give one, template="
        )
    return Template(found, tokens)


def _beside(folder: str) -> dict[str, Any]:
    out = settings_beside(folder)
    template = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(template):
        with open(template, encoding="utf-8") as f:
            out["chat_template"] = f.read()
    return out
