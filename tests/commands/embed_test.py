#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_embed: vectors of a tiny encoder of random weights, on the terminal and in files, and what bad input gets."""
import json
import subprocess

import h5py
import numpy as np
from commands import DEVICES, TOOLS, CommandTest, call, main
from tiny_language_model import encoder, model


class Embed(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("tiny.gguf", encoder())
        if call("embed", self.model, "a", "-d", "cpu").err.find("built without ICU") >= 0:
            self.skipTest("built without ICU")

    def run_json(self, *arguments, device="cpu"):
        lines = self.succeed("embed", self.model, *arguments, "-d", device).out.splitlines()
        return [json.loads(line) for line in lines]

    def test_vectors(self):
        texts = ["Abc, d\u00e9f.", "a", "", "x \u4e00"]
        rows = [self.run_json(*texts, device=device) for device in DEVICES]
        for row in rows:
            self.assertEqual([one["text"] for one in row], texts)
            self.assertEqual([one["tokens"] for one in row], [10, 3, 2, 4])
            vectors = np.array([one["embedding"] for one in row])
            self.assertEqual(vectors.shape, (4, 32))
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
            np.testing.assert_allclose(vectors, [one["embedding"] for one in rows[0]], atol=1e-5)
        alone = self.run_json("a")[0]["embedding"]
        np.testing.assert_allclose(alone, rows[0][1]["embedding"], atol=1e-6)
        raw = np.array(self.run_json("a", "--raw")[0]["embedding"])
        np.testing.assert_allclose(raw / np.linalg.norm(raw), alone, atol=1e-6)

    def test_files(self):
        lines = self.write("lines.txt", b"abc\r\na\n\nhh gg\n")
        rows = [one["embedding"] for one in self.run_json("--texts", lines)]
        self.assertEqual(len(rows), 4)
        self.assertEqual(self.succeed("embed", self.model, "--texts", lines, "-d", "cpu", "--out",
                                      self.folder / "rows.h5").out, "")
        with h5py.File(self.folder / "rows.h5") as file:
            np.testing.assert_array_equal(file["embeddings"][:], np.array(rows, np.float32))
        piped = subprocess.run([TOOLS / "dlprim_embed", self.model, "-d", "cpu"], input=lines.read_bytes(), capture_output=True)
        self.assertEqual([json.loads(line)["embedding"] for line in piped.stdout.splitlines()], rows)

    def test_bad_input(self):
        def refuse(words, *arguments, of=None, **how):
            self.refuse(words, "embed", of or self.model, *arguments, "-d", "cpu", **how)

        refuse(["text 2 has 42 tokens", "at most 24"], "a", "a " * 40)
        self.assertEqual(self.run_json("a " * 40, "--truncate")[0]["tokens"], 24)
        refuse(["text 3: ", "not UTF-8", "byte 2"], "--texts", self.write("bad.txt", b"a\n\na\xff\n"))
        refuse(["cannot be read"], "--texts", self.folder / "nowhere.txt")
        refuse(["makes text (llama)", "encoder"], "a", of=self.write("text.gguf", model()))
        self.refuse(["is an encoder (bert)", "dlprim_embed"], "generate", self.model, "a", "-d", "cpu")
        for words, keys in ((["pooling_type", "is 4"], {"bert.pooling_type": 4}),
                            (["no token for unknown words"], {"tokenizer.ggml.unknown_token_id": 1000}),
                            (["special token 99"], {"tokenizer.ggml.seperator_token_id": 99}),
                            (["position_embd.weight", "[24, 32]"], {"bert.context_length": 30}),
                            (["tokens, the model has 21"], {"tokenizer.ggml.tokens": ["a"]}),
                            (["'rwkv'", "WordPiece"], {"tokenizer.ggml.model": "rwkv"})):
            with self.subTest(keys):
                refuse(words, "a", of=self.write("bad.gguf", encoder(keys)))


if __name__ == "__main__":
    main()
