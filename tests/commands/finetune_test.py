#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train on a tiny language model: gradients, the curve, resuming, adapters in peft's layout, and what bad input gets."""
import csv
import json
import struct

import h5py
import numpy as np
from commands import DEVICES, CommandTest, call, main
from tiny_language_model import SIZES, TEMPLATE, model, model_tensors

LINES = [{"prompt": "ab", "completion": "cdef"}, {"text": "hello world"}, {"prompt": "x", "completion": "yz"}]


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return {name: np.frombuffer(data[8 + length:][slice(*item["data_offsets"])], "<f4").reshape(item["shape"])
            for name, item in header.items()}


class Reference:
    """The model in double, with an adapter on the products of queries, as gguf's weights have them."""

    def __init__(self, scale):
        self.weights = {name: array.astype("<f4").astype(float) for name, array in model_tensors().items()}
        self.scale = scale

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.weights[name + ".weight"]

    def loss(self, adapter, tokens, counts):
        heads, keys = SIZES["attention.head_count"], SIZES["attention.head_count_kv"]
        size, count = SIZES["embedding_length"] // heads, len(tokens)
        angles = np.arange(count)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)

        def product(x, name):
            return x @ self.weights[name + ".weight"].T

        def turn(x):
            even, odd, cos, sin = x[..., 0::2], x[..., 1::2], np.cos(angles)[:, None], np.sin(angles)[:, None]
            return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)

        x = self.weights["token_embd.weight"][tokens]
        for i in range(SIZES["block_count"]):
            at = f"blk.{i}."
            y = self.norm(x, at + "attn_norm")
            down, up = adapter[i]
            q = turn((product(y, at + "attn_q") + self.scale * (y @ down.T) @ up.T).reshape(count, heads, size))
            k = turn(product(y, at + "attn_k").reshape(count, keys, size))
            v = product(y, at + "attn_v").reshape(count, keys, size)
            k, v = (np.repeat(each, heads // keys, 1) for each in (k, v))
            scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size)
            scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + product(np.einsum("hij,jhd->ihd", shares, v).reshape(count, -1), at + "attn_output")
            y = self.norm(x, at + "ffn_norm")
            gate = product(y, at + "ffn_gate")
            x = x + product(gate / (1 + np.exp(-gate)) * product(y, at + "ffn_up"), at + "ffn_down")
        logits = product(self.norm(x, "output_norm"), "token_embd")[:-1]
        logits -= logits.max(-1, keepdims=True)
        losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(count - 1), tokens[1:]]
        return losses[np.array(counts[1:])].mean()

    def gradients(self, adapter, tokens, counts):
        """By central differences."""
        made = [tuple(np.zeros_like(each) for each in pair) for pair in adapter]
        for pair, of in zip(adapter, made, strict=True):
            for values, gradient in zip(pair, of, strict=True):
                for at in np.ndindex(values.shape):
                    before, ends = values[at], []
                    for values[at] in (before + 1e-5, before - 1e-5):
                        ends.append(self.loss(adapter, tokens, counts))
                    values[at] = before
                    gradient[at] = (ends[0] - ends[1]) / 2e-5
        return made


def neighbours(rows, head):
    """Rows of heads from Hugging Face's order to GGUF's."""
    return rows.reshape(-1, 2, head // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


class FineTune(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("tiny.gguf", model())
        if call("generate", self.model, "a", "-d", "cpu", "--length", "1").err.find("built without ICU") >= 0:
            self.skipTest("built without ICU")
        self.write_lines("train.jsonl", LINES)

    def write_lines(self, name, lines):
        return self.write(name, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def config(self, **changes):
        config = {"language_model": "tiny.gguf", "text": {"train": "train.jsonl"}, "batch": 2, "epochs": 3,
                  "lora": {"rank": 2, "alpha": 4}, "solver": {"type": "adamw", "learning_rate": 0.01}} | changes
        return self.write("train.json", json.dumps(config).encode())

    def train(self, out, *arguments, device="cpu", **changes):
        folder = self.folder / out
        self.succeed("train", self.config(**changes), "-d", device, "--out", folder, *arguments)
        return folder

    def losses(self, folder, column="train_loss"):
        with open(folder / "metrics.csv", newline="") as file:
            return [float(row[column]) for row in csv.DictReader(file)]

    def tokens(self, *arguments):
        return json.loads(self.succeed("generate", self.model, "abc", "-d", "cpu", "--length", "20", "--json",
                                       *arguments).out)["tokens"]

    def test_the_curve_repeats_and_falls(self):
        folders = [self.train(f"run{i}", device=device) for i, device in enumerate(["cpu", *DEVICES])]
        first = self.losses(folders[0])
        self.assertLess(first[-1], first[0])
        self.assertEqual(self.losses(folders[1]), first)  # the same device again
        for folder in folders[1:]:
            np.testing.assert_allclose(self.losses(folder), first, rtol=1e-3)
        weights = [(folder / "adapter/adapter_model.safetensors").read_bytes() for folder in folders]
        self.assertEqual(weights[0], weights[1])

    def test_an_adapter_is_in_the_layout_of_peft(self):
        adapter = self.train("run", lora={"rank": 2, "alpha": 4, "targets": ["q_proj", "*.layers.1.mlp.down_proj"]}) / "adapter"
        config = json.loads((adapter / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"], config["fan_in_fan_out"]),
                         ("LORA", 2, 4, False))
        self.assertEqual(config["target_modules"], ["model.layers.1.mlp.down_proj", "q_proj"])
        shapes = {name: array.shape for name, array in read_safetensors(adapter / "adapter_model.safetensors").items()}
        start = "base_model.model.model.layers."
        self.assertEqual(shapes, {
            start + f"{layer}.{module}.lora_{letter}.weight": shape for layer, module, letter, shape in [
                (0, "self_attn.q_proj", "A", (2, 32)), (0, "self_attn.q_proj", "B", (32, 2)),
                (1, "self_attn.q_proj", "A", (2, 32)), (1, "self_attn.q_proj", "B", (32, 2)),
                (1, "mlp.down_proj", "A", (2, 48)), (1, "mlp.down_proj", "B", (32, 2))]})

    def queries(self, folder):
        """A and B of the products of queries, in the order of rows of GGUF files."""
        file = read_safetensors(folder / "adapter/adapter_model.safetensors")
        names = [f"base_model.model.model.layers.{i}.self_attn.q_proj.lora_" for i in range(SIZES["block_count"])]
        return [(file[name + "A.weight"].astype(float), neighbours(file[name + "B.weight"].astype(float), 8))
                for name in names]

    def test_gradients_are_those_of_the_loss_in_double(self):
        lora, prompt, completion = {"rank": 1, "alpha": 2, "targets": ["q_proj"]}, "abc", "dxyz"
        self.write_lines("train.jsonl", [{"prompt": prompt, "completion": completion}])

        def run(out, rate, epochs):
            return self.train(out, lora=lora, batch=1, epochs=epochs, solver={"type": "sgd", "learning_rate": rate})

        reference, rate = Reference(scale=2), 0.5
        tokens = [*(prompt + completion).encode(), 256]
        counts = [False] * len(prompt) + [True] * (len(completion) + 1)
        adapter = self.queries(run("start", 1e-30, 1))
        losses = []
        for _ in range(3):
            losses.append(reference.loss(adapter, tokens, counts))
            gradients = reference.gradients(adapter, tokens, counts)
            for pair, of in zip(adapter, gradients, strict=True):
                for values, gradient in zip(pair, of, strict=True):
                    values -= rate * gradient
        trained = run("trained", rate, 3)
        np.testing.assert_allclose(self.losses(trained), losses, rtol=1e-4)
        for pair, expected in zip(self.queries(trained), adapter, strict=True):
            for values, wanted in zip(pair, expected, strict=True):
                np.testing.assert_allclose(values, wanted, rtol=1e-3, atol=1e-3 * abs(wanted).max())

    def test_a_resumed_run_ends_in_the_same_bits(self):
        whole = self.train("whole", lora={"rank": 2, "alpha": 4, "dropout": 0.2})
        parts = self.train("parts", "--epochs", "1", lora={"rank": 2, "alpha": 4, "dropout": 0.2})
        self.train("parts", "--resume", "latest", lora={"rank": 2, "alpha": 4, "dropout": 0.2})
        name = "adapter/adapter_model.safetensors"
        self.assertEqual((parts / name).read_bytes(), (whole / name).read_bytes())
        self.assertEqual(self.losses(parts), self.losses(whole))

    def test_checkpoints_of_steps_hold_the_adapter_alone(self):
        how = {"checkpoints": {"every_steps": 1, "keep": 20}, "text": {"train": "train.jsonl", "test": "train.jsonl"}}
        whole = self.train("whole", **how)
        with h5py.File(whole / "checkpoint_1_1.h5") as file:
            names = [name for name in file if name not in ("solver", "run")]
            self.assertEqual({name.split(".")[-2] for name in names}, {"lora_a", "lora_b"})
        self.succeed("train", self.config(**how), "-d", "cpu", "--out", self.folder / "parts", "--resume",
                     whole / "checkpoint_1_1.h5")
        for name in ("adapter/adapter_model.safetensors", "checkpoint_3.h5"):
            self.assertEqual((self.folder / "parts" / name).read_bytes(), (whole / name).read_bytes())

    def test_a_run_that_gets_no_better_ends_early(self):
        done = self.succeed("train", self.config(epochs=9, early_stopping={"patience": 2, "minimum_change": 1e9}), "-d", "cpu",
                            "--out", self.folder / "run")
        self.assertRegex(done.out, r"note: the training ends after epoch 3: the training perplexity .*\nepoch 3/9: loss .* rows/s")
        self.assertTrue((self.folder / "run/report.html").exists() and list((self.folder / "run").glob("events.out.*")))

    def test_text_with_an_adapter_and_merged(self):
        adapter = self.train("run", epochs=10) / "adapter"
        with_adapter = self.tokens("--lora", adapter)
        self.assertNotEqual(with_adapter, self.tokens())
        merged = self.folder / "merged.gguf"
        self.succeed("convert", self.model, merged, "--lora", adapter)
        folder = self.folder / "merged"
        self.succeed("convert", self.model, folder, "--lora", adapter)
        for path in (merged, folder):
            done = self.succeed("generate", path, "abc", "-d", "cpu", "--length", "20", "--json")
            self.assertEqual(json.loads(done.out)["tokens"], with_adapter)
        self.refuse(["exists and is no empty folder"], "convert", self.model, folder)
        self.refuse(["with its weights", "JSON"], "convert", self.model, self.folder / "net.json", self.folder / "w.h5")

    def test_texts_chats_and_a_test_set(self):
        self.write("tiny.gguf", model({"tokenizer.chat_template": TEMPLATE}))
        chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
        self.write_lines("train.jsonl", [chat, {"text": "a text that is longer than others"}])
        self.write("test.txt", b"plain text " * 20)
        done = self.succeed("train", self.config(text={"train": "train.jsonl", "test": "test.txt"}, length=32), "-d", "cpu",
                            "--out", self.folder / "run")
        # Of the chat "Ho" and the end behind it count; of the other text all tokens that have one before them.
        self.assertIn("2 rows of up to 32 tokens, 34 of which count; 1 of them were cut to 32", done.out)
        perplexities = self.losses(self.folder / "run", "test_perplexity")
        np.testing.assert_allclose(perplexities, np.exp(self.losses(self.folder / "run", "test_loss")))

    def test_bad_input(self):
        def refuse(words, *arguments, **changes):
            self.refuse(words, "train", self.config(**changes), "-d", "cpu", "--out", self.folder / "bad", *arguments)
            self.assertFalse((self.folder / "bad").exists())

        refuse(["nowhere.jsonl"], text={"train": "nowhere.jsonl"})
        refuse(["'q_prog'", "q_proj"], lora={"targets": ["q_prog"]})
        refuse(["lora.rank", "at least 1"], lora={"rank": 0})
        refuse(["5000", "4096"], length=5000)
        refuse(["lorra", "lora"], lorra={})
        for number, line in ((2, b'{"text": "a"'), (3, b'{"text": 5}'), (2, b'{"txt": "a"}'), (4, b'{"text": "a\xff"}'),
                             (2, b'{"messages": 5}')):
            self.write("train.jsonl", b'{"text": "good"}\n' * (number - 1) + line + b"\n")
            refuse([f"train.jsonl:{number}:"])
        self.write("train.jsonl", b"\n")
        refuse(["train.jsonl", "no text"])

    def test_adapters_of_other_models(self):
        adapter = self.train("run", epochs=1) / "adapter"

        def refuse(words, *arguments):
            self.refuse(words, "generate", self.model, "a", "-d", "cpu", *arguments)

        refuse(["nowhere", "adapter_config.json"], "--lora", self.folder / "nowhere")
        path = adapter / "adapter_config.json"
        config = path.read_text()
        path.write_text(config.replace('"r": 2', '"r": 3'))
        refuse(["another model", "q_proj", "[2, 32]"], "--lora", adapter)
        path.write_text(config.replace('"LORA"', '"IA3"'))
        refuse(["IA3", "LORA"], "--lora", adapter)
        path.write_text(config)
        weights = adapter / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes().replace(b"layers.1.mlp.up_proj", b"layers.7.mlp.up_proj"))
        refuse(["another model", "layers.7.mlp.up_proj"], "--lora", adapter)


if __name__ == "__main__":
    main()
