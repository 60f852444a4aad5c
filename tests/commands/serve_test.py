#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_serve: answers of OpenAI's API by a tiny model, what a key and names of hosts do, limits, and clients that come,
go and send broken requests."""
import base64
import http.client
import json
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from commands import SECONDS, TOOLS, CommandTest, main
from tiny_language_model import TEMPLATE, encoder, model

CLIENTS = 200


class Served:
    """A server in a process of its own; `port` is where it listens."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([TOOLS / "dlprim_serve", *map(str, arguments), "-d", "cpu", "--port", "0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.line = self.process.stdout.readline().decode()
        match = re.search(r"http://127\.0\.0\.1:(\d+)$", self.line.strip())
        assert match, self.line + self.process.stderr.read().decode()
        self.port = int(match.group(1))

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors.decode()

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            usual = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method, path, data, usual | (headers or {}))
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def post(self, path, body, **headers):
        status, text = self.request("POST", path, body, headers)
        return status, json.loads(text)

    def stream(self, path, body):
        status, text = self.request("POST", path, body | {"stream": True})
        assert status == 200, text
        events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        assert events[-1] == "[DONE]", events
        return [json.loads(event) for event in events[:-1]]


class Serve(CommandTest):
    def setUp(self):
        super().setUp()
        if not (TOOLS / "dlprim_serve").exists():
            self.skipTest("built without cpp-httplib")
        self.model = self.write("tiny.gguf", model({"tokenizer.chat_template": TEMPLATE}))

    def serve(self, *arguments, of=None):
        served = Served(of or self.model, *arguments)
        self.addCleanup(served.process.stdout.close)
        self.addCleanup(served.process.stderr.close)
        self.addCleanup(served.process.wait)
        self.addCleanup(served.process.kill)
        return served

    def test_answers(self):
        served = self.serve()
        self.assertEqual(served.request("GET", "/health"), (200, '{"status":"ok","running":0,"waiting":0}'))
        models = json.loads(served.request("GET", "/v1/models")[1])
        self.assertEqual([one["id"] for one in models["data"]], ["tiny"])

        greedy = {"prompt": "abc", "max_tokens": 8, "temperature": 0}
        status, answer = served.post("/v1/completions", greedy)
        self.assertEqual(status, 200, answer)
        expected = json.loads(self.succeed("generate", self.model, "abc", "--length", "8", "-d", "cpu", "--json").out)
        self.assertEqual(answer["choices"][0]["text"], expected["text"])
        self.assertEqual(answer["usage"]["prompt_tokens"], 3)
        self.assertEqual(answer["object"], "text_completion")
        several = served.post("/v1/completions", greedy | {"prompt": ["abc", [97, 98, 99], "x"]})[1]["choices"]
        self.assertEqual([one["index"] for one in several], [0, 1, 2])
        self.assertEqual(several[0]["text"], several[1]["text"])
        parts = served.stream("/v1/completions", greedy)
        self.assertEqual("".join(part["choices"][0]["text"] for part in parts), expected["text"])
        self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "length")

    def test_chats(self):
        served = self.serve("--batch", "4")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "temperature": 0, "logprobs": True,
                "top_logprobs": 2}
        status, answer = served.post("/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        # A step of as many rows as the server's rounds as that does.
        expected = json.loads(self.succeed("generate", self.model, "--prompts", self.write("prompts.txt", b"Hi\n"), "--batch",
                                           "4", "--chat", "--length", "8", "-d", "cpu", "--json", "--log-probabilities").out)
        choice = answer["choices"][0]
        self.assertEqual(choice["message"], {"role": "assistant", "content": expected["text"]})
        for got, wanted in zip(choice["logprobs"]["content"], expected["log_probabilities"], strict=True):
            self.assertAlmostEqual(got["logprob"], wanted, places=5)
            self.assertEqual(len(got["top_logprobs"]), 2)
        again = served.stream("/v1/chat/completions", body | {"stream_options": {"include_usage": True}})
        self.assertEqual(again[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        text = "".join(part["choices"][0]["delta"].get("content", "") for part in again if part["choices"])
        self.assertEqual(text, expected["text"])
        self.assertGreater(again[-1]["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        parts = body | {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}
        self.assertEqual(served.post("/v1/chat/completions", parts)[1]["choices"][0]["message"]["content"], expected["text"])

    def test_embeddings(self):
        path = self.write("encoder.gguf", encoder())
        served = self.serve("--most-bytes", "100000", of=path)
        texts = ["abc", "a b", "h."]
        lines = self.succeed("embed", path, *texts, "-d", "cpu").out.splitlines()
        expected = [json.loads(line)["embedding"] for line in lines]

        def embed(body, expected_status=200):
            status, answer = served.post("/v1/embeddings", body)
            self.assertEqual(status, expected_status, answer)
            return answer

        answer = embed({"input": texts, "model": "any"})
        self.assertEqual((answer["object"], answer["model"]), ("list", "encoder"))
        self.assertEqual([one["index"] for one in answer["data"]], [0, 1, 2])
        self.assertEqual([one["object"] for one in answer["data"]], ["embedding"] * 3)
        self.assertEqual([one["embedding"] for one in answer["data"]], expected)
        self.assertEqual(answer["usage"], {"prompt_tokens": 13, "total_tokens": 13})
        coded = embed({"input": texts, "encoding_format": "base64", "dimensions": 32})["data"]
        for one, row in zip(coded, expected, strict=True):
            self.assertEqual(list(struct.unpack("<32f", base64.b64decode(one["embedding"]))),
                             [struct.unpack("<f", struct.pack("<f", value))[0] for value in row])
        tokens = [2, 4, 14, 15, 3]  # [CLS] a ##b ##c [SEP]
        one = embed({"input": "abc"})["data"][0]["embedding"]
        self.assertEqual(embed({"input": tokens})["data"][0]["embedding"], one)
        self.assertEqual(len(embed({"input": [tokens, "abc"]})["data"]), 2)
        self.assertEqual(embed({"input": "a " * 50, "truncate": True})["usage"]["total_tokens"], 24)
        for words, body in (("'input'", {}), ("'input'", {"input": []}), ("'input'", {"input": ["a", 1]}),
                            ("a token of 'input'", {"input": [1, "a"]}), ("token 99", {"input": [99]}),
                            ("no tokens", {"input": [[]]}), ("52 tokens", {"input": "a " * 50}),
                            ("'encoding_format'", {"input": "a", "encoding_format": "int8"}),
                            ("'dimensions'", {"input": "a", "dimensions": 16}),
                            ("more than 2048", {"input": ["a"] * 2049}), ("'truncate'", {"input": "a", "truncate": "yes"})):
            self.assertIn(words, embed(body, 400)["error"]["message"])
        status, answer = served.post("/v1/completions", {"prompt": "a"})
        self.assertEqual((status, "makes no text" in answer["error"]["message"]), (400, True))
        models = json.loads(served.request("GET", "/v1/models")[1])["data"]
        self.assertEqual(models[0]["context_length"], 24)
        self.assertEqual(served.end(), (0, ""))
        status, answer = self.serve().post("/v1/embeddings", {"input": "a"})
        self.assertEqual((status, "need an encoder" in answer["error"]["message"]), (400, True))
        self.refuse(["is an encoder", "--context"], "serve", path, "-d", "cpu", "--context", "10")

    def test_wrong_requests(self):
        served = self.serve("--most-bytes", "100000", "--context", "200")

        def refuse(status, words, body, path="/v1/completions", **headers):
            got, answer = served.post(path, body, **headers)
            self.assertEqual(got, status, answer)
            self.assertIn(words, answer["error"]["message"])

        refuse(400, "no JSON", b"{")
        refuse(400, "no JSON", b"\xff\xfe")
        refuse(400, "no object", b"[1]")
        refuse(400, "no JSON", b"[" * 50000)
        refuse(400, "'prompt'", {})
        refuse(400, "'prompt'", {"prompt": []})
        refuse(400, "'prompt'", {"prompt": [1, "a"]})
        refuse(400, "token 999", {"prompt": [999]})
        refuse(400, "empty", {"prompt": ""})
        refuse(400, "200", {"prompt": "a" * 300})
        refuse(400, "'max_tokens'", {"prompt": "a", "max_tokens": -1})
        refuse(400, "'max_tokens'", {"prompt": "a", "max_tokens": 1e300})
        refuse(400, "temperature", {"prompt": "a", "temperature": -1})
        refuse(400, "top_p", {"prompt": "a", "top_p": 7, "stream": True})
        refuse(400, "'temperature'", {"prompt": "a", "temperature": "hot"})
        refuse(400, "'stop'", {"prompt": "a", "stop": [""]})
        refuse(400, "'n'", {"prompt": "a", "n": 2})
        refuse(400, "'echo'", {"prompt": "a", "echo": True})
        chat = "/v1/chat/completions"
        refuse(400, "'messages'", {"messages": "a"}, chat)
        refuse(400, "a message", {"messages": [1]}, chat)
        refuse(400, "'role'", {"messages": [{"role": 1, "content": "a"}]}, chat)
        refuse(400, "other than texts", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, chat)
        refuse(400, "'tools'", {"messages": [{"role": "user", "content": "a"}], "tools": [{}]}, chat)
        refuse(413, "too large", {"prompt": "a" * 200000})
        refuse(415, "Content-Type", {"prompt": "a"}, **{"Content-Type": "text/plain"})
        refuse(403, "own machine", {"prompt": "a"}, Host="example.org")
        self.assertEqual(served.request("GET", "/nowhere")[0], 404)
        self.assertEqual(served.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)
        self.assertEqual(served.end(), (0, ""))

    def test_a_key(self):
        self.refuse(["--key-file"], "serve", self.model, "-d", "cpu", "--host", "0.0.0.0", "--port", "0")
        self.refuse(["fewer than 16"], "serve", self.model, "-d", "cpu", "--key-file", self.write("short", b"abc"))
        served = self.serve("--key-file", self.write("key", b"0123456789abcdef\n"))
        body = {"prompt": "a", "max_tokens": 1}
        self.assertEqual(served.post("/v1/completions", body)[0], 401)
        self.assertEqual(served.post("/v1/completions", body, Authorization="Bearer 0123456789abcdeX")[0], 401)
        self.assertEqual(served.post("/v1/completions", body, Authorization="Bearer 0123456789abcdef")[0], 200)
        self.assertEqual(served.request("GET", "/health")[0], 200)
        self.assertEqual(served.end(signal.SIGTERM), (0, ""))

    def raw(self, served, data, read):
        with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS) as connection:
            connection.sendall(data)
            return connection.recv(read) if read else b""

    def client(self, served, number, expected, wrong):
        draw = random.Random(number)
        letter = "abcdefgh"[number % 8]
        body = {"prompt": letter * 5, "max_tokens": 6, "temperature": 0}
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        kind = number % 6
        try:
            if kind in (0, 1):
                status, answer = served.post("/v1/completions", body)
                if (status, answer["choices"][0]["text"] if status == 200 else "") not in ((200, expected[letter]), (503, "")):
                    wrong.append((number, status, answer))
            elif kind == 2:
                parts = served.stream("/v1/completions", body)
                text = "".join(part["choices"][0]["text"] for part in parts)
                if text != expected[letter]:
                    wrong.append((number, text))
            elif kind == 3:  # goes away before its body is sent, or while the answer comes
                data = json.dumps(body | {"stream": True, "max_tokens": 3000}).encode()
                self.raw(served, head + b"Content-Length: %d\r\n\r\n" % len(data) + data[:draw.choice((5, len(data)))],
                         draw.choice((0, 1, 200)) if draw.random() < 0.5 else 0)
            elif kind == 4:
                self.raw(served, bytes(draw.randrange(256) for _ in range(500)) + b"\r\n\r\n", 0)
            else:
                self.raw(served, head + b"Content-Length: 99999999999\r\n\r\n{}", 0)
        except (OSError, AssertionError, http.client.HTTPException, json.JSONDecodeError) as error:
            if kind == 2 and "too many requests" in str(error):
                return
            if kind in (0, 1, 2):
                wrong.append((number, repr(error)))

    def test_many_clients(self):
        for batch in (1, 8):
            with self.subTest(batch=batch):
                self.serve_many_clients(batch)

    def serve_many_clients(self, batch):
        served = self.serve("--whole-prompts", "--most-waiting", "400", "--threads", "256", "--batch", batch)
        expected = {letter: served.post("/v1/completions", {"prompt": letter * 5, "max_tokens": 6, "temperature": 0})[1]
                    ["choices"][0]["text"] for letter in "abcdefgh"}
        self.assertGreater(len(set(expected.values())), 1)
        wrong = []
        clients = [threading.Thread(target=self.client, args=(served, i, expected, wrong)) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(wrong, [])
        self.wait_for_load(served, 0, 0)  # of those that went away, too
        self.assertEqual(served.end(), (0, ""))

    def wait_for_load(self, served, running, waiting):
        deadline = time.monotonic() + SECONDS
        while (load := json.loads(served.request("GET", "/health")[1])) != {"status": "ok", "running": running,
                                                                            "waiting": waiting}:
            self.assertLess(time.monotonic(), deadline, load)
            time.sleep(0.02)

    def send(self, served, body):
        """A connection on which the request was sent."""
        data = json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS)
        self.addCleanup(connection.close)
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(data) + data)
        return connection

    def test_requests_that_join_others(self):
        served = self.serve("--whole-prompts", "--batch", "3")
        prompts = ["abc", "d" * 150, "ef"]
        bodies = [{"prompt": prompt, "max_tokens": 20, "temperature": 1.5, "seed": seed, "logprobs": 1}
                  for seed, prompt in enumerate(prompts)]
        alone = [served.post("/v1/completions", body)[1]["choices"] for body in bodies]
        long = {"prompt": "a", "max_tokens": 4000, "temperature": 0}  # greedy, it does not end before
        beside = self.send(served, long)
        self.wait_for_load(served, 1, 0)
        answers = [None] * len(bodies)

        def ask(i):
            answers[i] = served.post("/v1/completions", bodies[i])[1]["choices"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, alone)  # with their log-probabilities
        beside.close()
        self.wait_for_load(served, 0, 0)

    def test_clients_that_go_away(self):
        served = self.serve("--batch", "3")
        many = {"prompt": ["a"] * 16, "max_tokens": 4000, "temperature": 0}
        for stream in (False, True):  # ends as the client goes, whether it runs or waits
            first = self.send(served, many | {"stream": stream})
            self.wait_for_load(served, 3, 13)
            second = self.send(served, many | {"stream": not stream})
            self.wait_for_load(served, 3, 29)
            second.close()
            self.wait_for_load(served, 3, 13)
            first.close()
            self.wait_for_load(served, 0, 0)
        late = self.serve("--most-seconds", "1", "--batch", "2")
        answer = late.post("/v1/completions", many | {"prompt": ["a", "b"], "max_tokens": 100000})[1]
        self.assertEqual([one["finish_reason"] for one in answer["choices"]], ["length"] * 2)

    def test_requests_that_are_too_many(self):
        served = self.serve("--most-waiting", "1")
        long = {"prompt": "a", "max_tokens": 4000, "temperature": 0, "stream": True}
        with self.send(served, long) as connection:
            connection.recv(1)  # it has its place
            status, answer = served.post("/v1/completions", {"prompt": "b"})
            self.assertEqual((status, "too many requests" in answer["error"]["message"]), (503, True))
            code, errors = served.end()  # in the middle of the answer
        self.assertEqual((code, errors), (0, ""))


if __name__ == "__main__":
    main()
