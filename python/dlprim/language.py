# SPDX-License-Identifier: MIT
"""Language models: text, chats, probabilities of texts, and embeddings (docs/language.md).

model = dlprim.language.LanguageModel(dlprim.Context("gpu"), "model.gguf")
for piece in model.start("The capital of France is", length=20):
    print(piece.text, end="", flush=True)

model = dlprim.language.LanguageModel(dlprim.Context("gpu"), "model.gguf", batch=8)
for result in model.generate(["One, two,", "Red, green,"], length=20):
    print(result.text)

chat = dlprim.language.Chat(model, system="Answer briefly.")
print(chat.ask("Why is the sky blue?"))

encoder = dlprim.language.EmbeddingModel(dlprim.Context("gpu"), "all-MiniLM-L6-v2")
rows = encoder.embed(["a cat", "a small animal", "a tax form"])
print(rows @ rows[0])
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ._core import EmbeddingModel, GeneratedPiece, GenerateResult, Generation, GenerationBatch, LanguageModel
from .errors import InvalidArgumentError

__all__ = [
    "Chat",
    "EmbeddingModel",
    "GenerateResult",
    "GeneratedPiece",
    "Generation",
    "GenerationBatch",
    "LanguageModel",
    "perplexity",
]


class Chat:
    """A chat by the template of a model's file. A turn reads only what is new."""

    messages: list[dict[str, str]]
    """What was said, as dicts with 'role' and 'content'; it may be changed between turns."""

    def __init__(self, model: LanguageModel, *, system: str | None = None, **variables: Any) -> None:
        """`system` is what the system says first, and `variables` are more that the template knows."""
        self._model = model
        self._variables = variables
        self.messages = [] if system is None else [{"role": "system", "content": system}]

    def say(self, message: str, **options: Any) -> Iterator[str]:
        """Say something, and return an iterator over the text of the answer, which is made as it is asked for.

        `options` are those of LanguageModel.start(). Both turns become part of the chat when the answer has ended; one
        that is not taken to its end leaves no trace.
        """
        asked = [*self.messages, {"role": "user", "content": message}]
        prompt = self._model.encode_chat(asked, True, **self._variables)
        text = self._model.start(prompt, **{"remember": True, **options})
        for piece in text:
            if piece.text:
                yield piece.text
        self.messages = [*asked, {"role": "assistant", "content": text.text}]

    def ask(self, message: str, **options: Any) -> str:
        """Say something, and return the answer."""
        return "".join(self.say(message, **options))


def perplexity(model: LanguageModel, text: str, *, special: bool = False) -> float:
    """Return the exponential of the mean of -log p over the tokens of a text behind the first one.

    The text must fit into the model's context. Reads one token after the other.
    """
    tokens = model.encode(text, special)
    if len(tokens) < 2:
        raise InvalidArgumentError("the perplexity of a text needs two tokens or more")
    return math.exp(-float(model.log_probabilities(tokens).mean()))
