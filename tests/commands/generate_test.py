#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_generate: text of a tiny model of random weights, its figures, where it ends, and what bad input gets."""
import json
import os
import signal
import subprocess
import time

from commands import DEVICES, TOOLS, CommandTest, call, main
from tiny_language_model import TEMPLATE, byte_names, model


class Generate(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "tiny.gguf"
        self.model.write_bytes(model())
        if call("generate", self.model, "a", "-d", "cpu", "--length", "1").err.find("built without ICU") >= 0:
            self.skipTest("built without ICU")

    def run_json(self, *arguments, device="cpu"):
        return json.loads(self.succeed("generate", self.model, *arguments, "-d", device, "--json").out)

    def test_text_and_figures(self):
        results = [self.run_json("the prompt he<|end|>", "--length", "40", device=device) for device in DEVICES]
        for result in results:
            self.assertEqual(result["tokens"], results[0]["tokens"])
            self.assertEqual(result["prompt_tokens"], len("the prompt he") - 2 + 1)  # two times "he", one special token
            for name in ("prompt_tokens_per_s", "tokens_per_s", "first_token_ms", "peak_bytes"):
                self.assertGreater(result[name], 0, name)
        self.assertLessEqual(len(results[0]["tokens"]), 40)
        plain = self.run_json("the prompt he<|end|>", "--length", "1", "--plain")
        self.assertEqual(plain["prompt_tokens"], len("the prompt he<|end|>") - 2)

    def test_the_text_alone_is_on_standard_output(self):
        done = subprocess.run([TOOLS / "dlprim_generate", self.model, "abc", "-d", "cpu", "--length", "30"],
                              capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        tokens = self.run_json("abc", "--length", "30")["tokens"]
        expected = b"".join({256: b"<|end|>", 257: b"he"}.get(token) or bytes([token]) for token in tokens)
        self.assertEqual(done.stdout, expected + b"\n")
        self.assertIn(b"first token after", done.stderr)

    def test_prompts_from_a_file_and_from_standard_input(self):
        prompt = self.folder / "prompt.txt"
        prompt.write_text("one\ntwo " * 50)
        tokens = self.run_json("one\ntwo " * 50, "--length", "5")["tokens"]
        self.assertEqual(self.run_json("--prompt-file", prompt, "--length", "5")["tokens"], tokens)
        done = subprocess.run([TOOLS / "dlprim_generate", self.model, "-d", "cpu", "--length", "5", "--json"],
                              input=prompt.read_bytes(), capture_output=True)
        self.assertEqual(json.loads(done.stdout)["tokens"], tokens)

    def test_where_a_text_ends(self):
        whole = self.run_json("abc", "--length", "60")
        self.assertIn(whole["end"], ("length", "token"))
        text = whole["text"]
        stop = next(letter for letter in text[3:] if letter.isascii() and letter.isalnum())
        cut = self.run_json("abc", "--length", "60", "--stop", stop, "--stop", "not in the text")
        self.assertEqual((cut["end"], cut["text"]), ("stop", text[:text.find(stop)]))
        short = self.run_json("abc", "--length", "60", "--context", "20")
        self.assertEqual((short["end"], len(short["tokens"])), ("context", 18))
        self.assertEqual(short["tokens"], whole["tokens"][:18])

    def test_drawing(self):
        drawn = [self.run_json("abc", "--length", "20", "--temperature", "1.5", "--top-k", "50", "--top-p", "0.95",
                               "--seed", seed)["tokens"] for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        greedy = self.run_json("abc", "--length", "20")["tokens"]
        self.assertEqual(self.run_json("abc", "--length", "20", "--temperature", "2", "--top-k", "1")["tokens"], greedy)

    def test_an_interrupt_ends_the_text_and_figures_follow(self):
        process = subprocess.Popen([TOOLS / "dlprim_generate", self.model, "abc", "-d", "cpu", "--length", "4000",
                                    "--temperature", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL)
        os.read(process.stdout.fileno(), 1)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(b"first token", errors)

    def test_a_penalty_and_log_probabilities(self):
        plain = self.run_json("abc", "--length", "30", "--log-probabilities")
        self.assertEqual(len(plain["log_probabilities"]), len(plain["tokens"]))
        self.assertLess(max(plain["log_probabilities"]), 0)
        varied = self.run_json("abc", "--length", "30", "--repetition-penalty", "1000")["tokens"]
        self.assertEqual(len(set(varied)), len(varied))
        least = self.run_json("abc", "--length", "9", "--temperature", "3", "--min-p", "1")["tokens"]
        self.assertEqual(least, plain["tokens"][:9])

    def test_prompts_in_a_batch(self):
        prompts = self.write("prompts.txt", b"abc\nhello\nhe he he he\nxyz\nq\n")

        def texts(*arguments):
            done = self.succeed("generate", self.model, "--prompts", prompts, "-d", "cpu", "--length", "9", "--json", *arguments)
            return [[json.loads(line)[key] for key in ("text", "tokens", "end", "prompt_tokens")] for line in done.out.splitlines()]

        self.assertEqual(texts("--batch", "3"), texts())
        self.assertEqual(len(texts("--batch", "8")), 5)
        done = self.succeed("generate", self.model, "--prompts", prompts, "-d", "cpu", "--length", "4", "--batch", "2")
        self.assertEqual(done.out.count("> "), 5)
        self.assertIn("--prompts", call("generate", self.model, "abc", "--batch", "2", "-d", "cpu").err)

    def test_several_prompts(self):
        prompts = self.write("prompts.txt", b"abc\n\nhello\r\n")
        done = self.succeed("generate", self.model, "--prompts", prompts, "-d", "cpu", "--length", "4", "--json")
        texts = [json.loads(line)["tokens"] for line in done.out.splitlines()]
        self.assertEqual(texts, [self.run_json(prompt, "--length", "4")["tokens"] for prompt in ("abc", "hello")])

    def chat_model(self, template=TEMPLATE):
        return self.write("chat.gguf", model({"tokenizer.chat_template": template}))

    def test_a_chat_reads_only_what_is_new(self):
        tiny = self.chat_model()
        one = json.loads(self.succeed("generate", tiny, "Hi", "--chat", "--system", "Be kind", "-d", "cpu", "--length", "3",
                                      "--json").out)
        expected = self.run_json("[system]Be kind<|end|>[user]Hi<|end|>[assistant]", "--length", "3")
        self.assertEqual(one["tokens"], expected["tokens"])
        done = subprocess.run([TOOLS / "dlprim_generate", tiny, "--chat", "-d", "cpu", "--length", "3", "--json"],
                              input=b"Hi\n\nhow\n", capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        turns = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(len(turns), 2)
        self.assertEqual(turns[0]["remembered_tokens"], 0)
        self.assertGreaterEqual(turns[1]["remembered_tokens"], turns[0]["prompt_tokens"])
        # A name of a control token in a message is text.
        hostile = self.run_chat(tiny, "a<|end|>b")
        self.assertEqual(hostile["prompt_tokens"], self.run_chat(tiny, "a")["prompt_tokens"] + len("<|end|>b"))

    def run_chat(self, tiny, turn):
        return json.loads(self.succeed("generate", tiny, turn, "--chat", "-d", "cpu", "--length", "1", "--json").out)

    def test_what_a_model_takes(self):
        memory = json.loads(self.succeed("generate", self.model, "--memory", "-d", "cpu", "--json").out)
        self.assertEqual(memory["bytes_per_token"], 2 * 2 * 2 * 8 * 4)
        self.assertGreater(memory["weight_bytes"], 258 * 32 * 4)
        self.assertEqual(memory["longest_context"], 4096)
        self.assertIn("a context of 4096 fits", self.succeed("generate", self.model, "--memory", "-d", "cpu").out)

    def test_bad_input(self):
        def refuse(words, *arguments, code=1):
            self.refuse(words, "generate", *arguments, "-d", "cpu", code=code)

        def refuse_model(words, data):
            self.write("bad.gguf", data)
            refuse([*words, "bad.gguf"], self.folder / "bad.gguf", "abc")

        refuse(["nowhere.gguf"], self.folder / "nowhere.gguf", "abc")
        refuse_model(["cut short"], self.model.read_bytes()[:200])
        refuse_model(["tensor", "ends after"], self.model.read_bytes()[:-2000])
        refuse_model(["JSON", "a GGUF file is expected"], b"{}")
        refuse_model(["attn_k.weight"], model(without=["blk.1.attn_k"]))
        refuse_model(["yarn", "linear"], model({"llama.rope.scaling.type": "yarn"}))
        refuse_model(["'rwkv'", "gpt2"], model({"tokenizer.ggml.model": "rwkv"}))
        refuse_model(["257 tokens", "258"], model({"tokenizer.ggml.tokens": byte_names() + ["x"]}))
        refuse(["'other'", "llama"], self.write("other.gguf", model({"general.architecture": "other"})), "abc")
        refuse(["prompt is empty"], self.model, "")
        refuse(["4096", "9000"], self.model, "a" * 9000)
        refuse(["context of 5000", "4096"], self.model, "a", "--context", "5000")
        refuse(["temperature"], self.model, "a", "--temperature", "-1")
        refuse(["not UTF-8", "byte 2"], self.model, "--prompt-file", self.write("wrong.txt", b"a\xff"))
        refuse(["--length"], self.model, "a", "--length", "0", code=2)
        refuse(["no chat template"], self.model, "a", "--chat")
        refuse(["chat template", "line 2", "endif"], self.chat_model("\n{% if a %}"), "a", "--chat")
        refuse(["line 1", "only systems"], self.chat_model("{{ raise_exception('only systems') }}"), "a", "--chat")
        refuse(["not UTF-8"], self.chat_model(), "--chat", "--prompts", self.write("wrong.txt", b"a\xff"))
        refuse(["variables"], self.chat_model(), "a", "--chat", "--template-variables", "{")
        refuse(["min_p"], self.model, "a", "--min-p", "2")


if __name__ == "__main__":
    main()
