# SPDX-License-Identifier: MIT
"""dlprim.language: texts, chats and probabilities of a tiny model of random weights, and embeddings of another."""

from __future__ import annotations

import json
import math
import pathlib
import sys
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import language

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "commands"))
import tiny_language_model as tiny

END = 256


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("language") / "tiny.gguf"
    file.write_bytes(tiny.model({"tokenizer.chat_template": tiny.TEMPLATE}))
    return file


@pytest.fixture
def model(context: dlprim.Context, path: pathlib.Path) -> language.LanguageModel:
    try:
        return language.LanguageModel(context, path)
    except dlprim.UnsupportedError as error:
        pytest.skip(str(error))  # built without ICU


def greedy(model: language.LanguageModel, prompt: list[int], length: int) -> list[int]:
    """The likeliest tokens by the logits of read()."""
    model.forget()
    tokens: list[int] = []
    logits = model.read(prompt)
    while len(tokens) < length and int(np.argmax(logits)) != END:
        tokens.append(int(np.argmax(logits)))
        logits = model.read(tokens[-1:])
    return tokens


def test_facts(model: language.LanguageModel) -> None:
    assert (model.architecture, model.vocabulary, model.context_length) == ("llama", 258, 4096)
    memory = model.memory()
    assert memory["per_token"] == 2 * 2 * 2 * 8 * 4
    assert memory["longest_context"] == 4096
    assert model.position == 0
    assert model.has_chat_template
    model.read([1, 2, 3])
    assert model.position == 3
    assert model.peak_bytes > memory["weights"]
    model.forget(2)
    assert model.position == 2


def test_tokens(model: language.LanguageModel) -> None:
    assert model.encode("he<|end|>") == [257, END]
    assert model.encode("<|end|>", special=False) == list(b"<|end|>")
    assert model.decode([97, 257]) == "ahe"
    assert model.decode([0xC3]) == "\ufffd"
    with pytest.raises(dlprim.InvalidArgumentError, match="none of"):
        model.decode([999])


def test_an_adapter(
    context: dlprim.Context,
    path: pathlib.Path,
    model: language.LanguageModel,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    random, rank, scale = np.random.default_rng(7), 2, 1.5
    weights, matrices = tiny.model_tensors(), {}
    for layer in range(tiny.SIZES["block_count"]):
        weight = weights[f"blk.{layer}.attn_v.weight"]
        a, b = random.normal(size=(rank, weight.shape[1])), random.normal(size=(weight.shape[0], rank))
        for letter, values in (("A", a), ("B", b)):
            name = f"base_model.model.model.layers.{layer}.self_attn.v_proj.lora_{letter}.weight"
            matrices[name] = values.astype(np.float32)
        weights[f"blk.{layer}.attn_v.weight"] = weight + scale * b @ a
    numpy_files.save_file(matrices, tmp_path / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": scale * rank, "target_modules": ["v_proj"]}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    monkeypatch.setattr(tiny, "model_tensors", lambda without: weights)
    (tmp_path / "merged.gguf").write_bytes(tiny.model())
    merged = language.LanguageModel(context, tmp_path / "merged.gguf").read([1, 2, 3])
    with_adapter = language.LanguageModel(context, path, lora=tmp_path).read([1, 2, 3])
    np.testing.assert_allclose(with_adapter, merged, rtol=1e-4, atol=1e-4 * float(np.abs(merged).max()))
    assert np.abs(with_adapter - model.read([1, 2, 3])).max() > 0.1
    with pytest.raises(dlprim.NotFoundError, match="adapter_config.json"):
        language.LanguageModel(context, path, lora=tmp_path / "nowhere")


def test_a_text_token_by_token(model: language.LanguageModel) -> None:
    expected = greedy(model, model.encode("abc"), 12)
    text = model.start("abc", length=12, alternatives=2)
    assert isinstance(text, language.Generation)
    assert text.prompt_tokens == 3
    assert text.prompt_seconds > 0
    assert text.end == "length"
    pieces = list(text)
    tokens = [piece.token for piece in pieces if piece.token is not None]
    assert tokens == text.tokens == expected
    assert "".join(piece.text for piece in pieces) == text.text
    for piece in pieces[: len(tokens)]:
        assert isinstance(piece, language.GeneratedPiece)
        assert piece.alternatives[0] == (piece.token, piece.log_probability)
        assert piece.alternatives[0][1] > piece.alternatives[1][1]
    assert [piece.log_probability for piece in pieces[: len(tokens)]] == text.log_probabilities
    assert text.first_token_seconds >= text.prompt_seconds
    assert text.seconds >= 0
    assert next(text, None) is None
    assert model.start(model.encode("abc"), length=12).run() == text.text


def test_options(model: language.LanguageModel) -> None:
    drawn = {"length": 20, "temperature": 2.0, "top_k": 50, "top_p": 0.9, "min_p": 0.001, "seed": 3}
    assert model.start("abc", **drawn).run() == model.start("abc", **drawn).run()
    varied = model.start("abc", length=20, repetition_penalty=1000.0, repetition_window=0)
    varied.run()
    assert len(set(varied.tokens)) == len(varied.tokens)
    whole = model.start("abc", length=20).run()
    letter = next(letter for letter in whole[1:] if letter.isascii())
    assert model.start("abc", length=20, stop=letter).run() == whole[: whole.index(letter)]
    assert model.start("abc", length=20, stop=["\0\0\0\0", letter]).run() == whole[: whole.index(letter)]
    again = model.start("abcd", length=1, remember=True)
    assert again.remembered_tokens == 3
    arguments: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"temperature": -1.0}, dlprim.InvalidArgumentError, "temperature"),
        ({"temperatur": 1.0}, TypeError, "no option 'temperatur'"),
        ({"length": "a"}, TypeError, "'length'"),
        ({"length": 0}, dlprim.InvalidArgumentError, "0 tokens"),
    ]
    for options, kind, words in arguments:
        with pytest.raises(kind, match=words):
            model.start("abc", **options)
    with pytest.raises(dlprim.InvalidArgumentError, match="empty"):
        model.start("")
    with pytest.raises(dlprim.InvalidArgumentError, match="at most 4096"):
        model.start([1] * 5000)


def test_texts_of_several_prompts(context: dlprim.Context, path: pathlib.Path) -> None:
    model = language.LanguageModel(context, path, batch=3)
    prompts: list[str | list[int]] = ["abc", [100, 101], "x" * 100, "hello", "q"]
    options: dict[str, Any] = {"length": 9, "temperature": 1.5, "seed": 5, "alternatives": 2}
    alone = [model.generate([prompt], **options)[0] for prompt in prompts]
    together = model.generate(iter(prompts), **options)
    for one, expected in zip(together, alone, strict=True):
        assert isinstance(one, language.GenerateResult)
        assert (one.text, one.tokens, one.end) == (expected.text, expected.tokens, expected.end)
        assert one.log_probabilities == expected.log_probabilities  # bit for bit
        assert len(one.alternatives[0]) == 2
        assert one.first_token_seconds >= one.prompt_seconds > 0
        assert one.seconds >= 0
        assert one.remembered_tokens == 0
    assert [one.prompt_tokens for one in together] == [3, 2, 100, 4, 1]
    assert model.generate([]) == []

    pieces = [""] * len(prompts)
    numbers = []
    stream = model.stream(prompts, **options)
    for number, piece in stream:
        assert isinstance(piece, language.GeneratedPiece)
        pieces[number] += piece.text
        numbers.append(number)
    assert pieces == [one.text for one in alone]
    assert numbers != sorted(numbers)  # several at a time
    assert stream.take(3).text == pieces[3]
    with pytest.raises(dlprim.InvalidArgumentError, match="no text 3"):
        stream.take(3)
    with pytest.raises(TypeError, match="list of prompts"):
        model.generate("a text alone")
    with pytest.raises(TypeError, match="no option"):
        model.stream(["a"], temperatur=1.0)  # type: ignore[call-arg]
    with pytest.raises(dlprim.InvalidArgumentError, match="empty"):
        model.generate(["a", ""])
    with pytest.raises(dlprim.InvalidArgumentError, match="1 to 256"):
        language.LanguageModel(context, path, batch=0)


def test_texts_that_join_a_batch(context: dlprim.Context, path: pathlib.Path) -> None:
    model = language.LanguageModel(context, path, batch=2)
    expected = [model.generate([prompt], length=6, seed=seed)[0].text for seed, prompt in enumerate("abc")]
    batch = model.start_batch()
    assert isinstance(batch, language.GenerationBatch)
    assert batch.add("a", length=6, seed=0) == 0
    next(batch)
    assert (batch.add("b", length=6, seed=1), batch.add("c", length=6, seed=2)) == (1, 2)
    assert (batch.running, batch.waiting) == (1, 2)
    list(batch)
    assert (batch.running, batch.waiting) == (0, 0)
    assert [batch.take(number).text for number in range(3)] == expected
    batch.add("d", length=4000)
    next(batch)
    assert batch.take(3).end == "caller"
    assert next(batch, None) is None
    model.forget()
    batch_of_a_dead_model = language.LanguageModel(context, path).start_batch()
    assert batch_of_a_dead_model.add("a", length=1) == 0
    with pytest.raises(dlprim.InvalidArgumentError, match="cannot go on"):
        batch.add("e")


def test_a_text_ends_where_its_model_reads_something_else(model: language.LanguageModel) -> None:
    text = model.start("abc", length=20)
    next(text)
    model.forget()
    with pytest.raises(dlprim.InvalidArgumentError, match="something else"):
        next(text)


def test_a_text_keeps_its_model(context: dlprim.Context, path: pathlib.Path) -> None:
    text = language.LanguageModel(context, path).start("abc", length=3)
    assert len(list(text)) >= 1


def test_a_chat(model: language.LanguageModel) -> None:
    messages = [{"role": "user", "content": "Hi<|end|>"}]
    assert model.chat_prompt(messages) == "[user]Hi<|end|><|end|>[assistant]"
    assert model.chat_prompt(messages, False) == "[user]Hi<|end|><|end|>"
    tokens = model.encode_chat(messages)
    assert tokens.count(END) == 1  # the name in the message is text
    chat = language.Chat(model, system="Be kind.")
    answer = "".join(chat.say("Hi", length=5))
    assert [message["role"] for message in chat.messages] == ["system", "user", "assistant"]
    assert chat.messages[2]["content"] == answer
    assert chat.ask("And?", length=5) == chat.messages[4]["content"]
    begun = chat.say("never", length=5)
    next(begun, None)
    begun.close()  # type: ignore[attr-defined]
    assert len(chat.messages) == 5
    with pytest.raises(ValueError, match="role"):
        model.chat_prompt([{"content": "a"}])
    with pytest.raises(TypeError, match="dict"):
        model.chat_prompt(["a"])  # type: ignore[list-item]


def test_probabilities(model: language.LanguageModel) -> None:
    tokens = model.encode("hello")
    logits = [model.read([token]) for token in tokens]
    expected = [
        float(row[following]) - float(np.logaddexp.reduce(row.astype(np.float64)))
        for row, following in zip(logits, tokens[1:], strict=False)
    ]
    got = model.log_probabilities(tokens)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert math.isclose(language.perplexity(model, "hello"), math.exp(-np.mean(expected)), rel_tol=1e-4)
    with pytest.raises(dlprim.InvalidArgumentError, match="two tokens"):
        language.perplexity(model, "a")


def test_embeddings(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "encoder.gguf"
    file.write_bytes(tiny.encoder())
    try:
        model = language.EmbeddingModel(context, file, step_tokens=32)
    except dlprim.UnsupportedError as error:
        pytest.skip(str(error))  # built without ICU
    assert (model.architecture, model.vocabulary, model.features, model.longest_text) == ("bert", 21, 32, 24)
    assert model.encode("ab C") == [2, 4, 14, 6, 3]
    assert len(model.encode("a " * 30, truncate=True)) == 24
    texts = ["ab C", "", "hh", "gfe. dc"]
    rows = model.embed(texts)
    assert (rows.shape, rows.dtype) == ((4, 32), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(model.embed([[2, 4, 14, 6, 3]])[0], rows[0], atol=1e-5)
    raw = model.embed(iter(texts[2:]), normalize=False)
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), rows[2:], atol=1e-5)
    assert model.embed([]).shape == (0, 32)
    assert model.peak_bytes > 0
    assert model.embed(["a " * 30], truncate=True).shape == (1, 32)
    with pytest.raises(dlprim.InvalidArgumentError, match="text 2 has 32 tokens"):
        model.embed(["a", "a " * 30])
    with pytest.raises(dlprim.InvalidArgumentError, match="no tokens"):
        model.embed([[]])
    with pytest.raises(TypeError, match="texts"):
        model.embed("a text alone")
    with pytest.raises(dlprim.UnsupportedError, match="is an encoder"):
        language.LanguageModel(context, file)


def test_wrong_files(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    with pytest.raises(dlprim.MissingFileError):
        language.LanguageModel(context, tmp_path / "nowhere.gguf")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(tiny.model({"general.architecture": "other"}))
    with pytest.raises(dlprim.UnsupportedError, match="llama"):
        language.LanguageModel(context, bad)
    bad.write_bytes(tiny.model({"tokenizer.chat_template": "\n{% if %}"}))
    model = language.LanguageModel(context, bad)
    with pytest.raises(dlprim.FormatError, match="line 2"):
        model.chat_prompt([])
