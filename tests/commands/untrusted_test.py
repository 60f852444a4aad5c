#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--untrusted: files are read in a process of its own. Results are those of a command that reads them itself; a reader that
crashes, hangs, eats memory or answers nonsense, which small programs stand in for here, is an error of one sentence."""
import os
import pathlib
import struct
import subprocess
import sys
import time

import numpy as np
from commands import SECONDS, TOOLS, CommandTest, main, network, operator
from pictures import JPEG, RED, png

NET = network({"x": [2, 6]}, ["score"], operator("InnerProduct", "fc", "x", "score", outputs=3))
W, B = np.arange(18, dtype=np.float32).reshape(3, 6), np.array([1, 2, 3], np.float16)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)

MARK, END = 0x646c7072696d0001, 0x646c7072696d00ff
ERROR, TENSORS, STEPS, IMAGE = range(4)


def numbers(*values):
    return struct.pack(f"={len(values)}Q", *values)


def text(value):
    return numbers(len(value)) + value


def tensors(*all_of_them, count=None):
    """An answer; a tensor is (name, type, sizes, bytes)."""
    answer = numbers(MARK, TENSORS, len(all_of_them) if count is None else count)
    for name, dtype, sizes, data in all_of_them:
        answer += text(name) + numbers(dtype, len(sizes), *sizes) + data
    return answer + numbers(END)


class Untrusted(CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", NET)
        self.weights = self.write_tensors("w.h5", fc__0=W, fc__1=B)
        self.inputs = self.write_tensors("in.h5", x=X)

    def run_net(self, *more):
        return ("run", self.net, "-d", "cpu", "--weights", self.weights, "--inputs", self.inputs, "--outputs",
                self.folder / "out.h5", *more)

    def reader(self, code):
        """A program in place of dlprim_reader, whose descriptor 3 is the answer."""
        path = self.write("reader", f"#!{sys.executable}\nimport os, sys, time\n"
                                    f"def answer(data):\n    while data: data = data[os.write(3, data):]\n{code}\n")
        path.chmod(0o755)
        return {"DLPRIM_READER": str(path), "PYTHONDONTWRITEBYTECODE": "1"}

    def answers(self, data):
        self.write("answer", data)
        return self.reader(f"answer(open({str(self.folder / 'answer')!r}, 'rb').read())")

    def refuse_reader(self, words, **environment):
        self.refuse(["in.h5", *words], *self.run_net("--untrusted"), **environment)
        self.assertFalse((self.folder / "out.h5").exists())

    def test_results_are_the_same(self):
        self.succeed(*self.run_net())
        own = (self.folder / "out.h5").read_bytes()
        said = self.succeed(*self.run_net("--untrusted")).err
        self.assertEqual(((self.folder / "out.h5").read_bytes(), said), (own, ""))
        self.succeed("benchmark", "-i1", "-w1", "--untrusted", "cpu", self.net, self.weights)

    def test_errors_are_the_same(self):
        good = self.weights.read_bytes()
        for name, content in (("text", b"these are no weights"), ("half", good[:len(good) // 2]), ("empty", b"")):
            with self.subTest(name):
                self.weights.write_bytes(content)
                plain, apart = self.refuse(["w.h5"], *self.run_net()), self.refuse(["w.h5"], *self.run_net("--untrusted"))
                self.assertEqual(plain.err, apart.err)
        for lacking in ({"fc__0": W}, {"fc__0": W.T, "fc__1": B}, {"fc__0": W, "fc__1": B.astype(np.int32)}):
            with self.subTest(sorted(lacking)):
                self.write_tensors("w.h5", **lacking)
                plain, apart = self.refuse(["w.h5"], *self.run_net()), self.refuse(["w.h5"], *self.run_net("--untrusted"))
                self.assertEqual(plain.err, apart.err)
        self.weights = self.folder / "none.h5"
        self.refuse(["no file", "none.h5"], *self.run_net("--untrusted"))

    def test_pictures(self):
        net = self.write("pictures.json", network(
            {"data": [1, 3, 8, 8]}, ["scores"], operator("GlobalPooling", "pool", "data", mode="avg"),
            operator("InnerProduct", "scores", "pool", outputs=3, bias=False)))
        weights = self.write_tensors("pictures.h5", scores__0=np.eye(3, dtype=np.float32))
        red, jpeg = self.write("red.png", png(np.full((20, 30, 3), RED, np.uint8))), self.write("both.jpg", JPEG)
        command = [TOOLS / "image_predict", net, weights, red, jpeg, "-d", "cpu", "--json", "-"]
        plain = subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)
        apart = subprocess.run([*command, "--untrusted"], capture_output=True, timeout=SECONDS, check=True)
        self.assertEqual(plain.stdout, apart.stdout)
        jpeg.write_bytes(JPEG[:-30])
        apart = subprocess.run([*command, "--untrusted"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(apart.returncode, 1)
        self.assertIn("cut short", apart.stderr)
        lying = self.answers(numbers(MARK, IMAGE, 1 << 15, 1 << 15, 3) + bytes(100))
        apart = subprocess.run([*command, "--untrusted"], capture_output=True, text=True, timeout=SECONDS,
                               env=os.environ | lying)
        self.assertEqual(apart.returncode, 1)
        self.assertIn("nonsense", apart.stderr)

    def test_first_weights_of_a_training(self):
        net = network({"data": [4, 6], "label": ([4], "int")}, ["score", "loss"],
                      operator("InnerProduct", "fc", "data", "score", outputs=3),
                      operator("SoftmaxWithLoss", "loss", "score label"))
        self.write("train_net.json", net)
        self.write("data.csv", "a,b,c,d,e,f,label\n" + "".join(f"{i},1,2,3,4,5,{i % 3}\n" for i in range(8)))
        for first in ({"weights": "w.h5"}, {"initial": {"weights": "w.h5"}}):
            config = self.write("train.json", {
                "net": "train_net.json", "batch": 4, "epochs": 1, **first,
                "data": {"type": "csv", "train": "data.csv", "label": "label"}})
            models = []
            for out, more in (("plain", ()), ("apart", ("--untrusted",))):
                self.succeed("train", config, "-d", "cpu", "--replace", "--out", self.folder / out, *more)
                models.append((self.folder / out / "model.h5").read_bytes())
            self.assertEqual(*models)
            self.refuse(["w.h5", "ended by signal", "Segmentation fault"], "train", config, "-d", "cpu", "--replace", "--out",
                        self.folder / "no", "--untrusted", **self.reader("os.kill(os.getpid(), 11)"))

    def test_a_reader_that_crashes(self):
        self.refuse_reader(["ended by signal", "Segmentation fault"], **self.reader("os.kill(os.getpid(), 11)"))
        self.refuse_reader(["ended by signal", "Aborted"], **self.reader("os.abort()"))
        self.refuse_reader(["exit code 3"], **self.reader("sys.exit(3)"))
        half = tensors((b"x", 0, (2, 6), X.tobytes()))
        self.refuse_reader(["ended by signal"], **self.reader(f"answer({half[:60]!r}); os.kill(os.getpid(), 11)"))
        # An answer that is whole does not count if its writer crashes after it.
        self.refuse_reader(["ended by signal"], **self.reader(f"answer({half!r}); os.kill(os.getpid(), 11)"))
        self.refuse_reader(["exit code 127"], DLPRIM_READER=str(self.folder / "none"))

    def test_a_reader_that_hangs(self):
        begin = time.monotonic()
        self.refuse_reader(["longer than 1 s", "DLPRIM_READER_SECONDS"], **self.reader("time.sleep(600)"),
                           DLPRIM_READER_SECONDS="1")
        # One that begins to answer, and one that closes its end and stays.
        begins = tensors((b"x", 0, (2, 6), X.tobytes()))[:56]
        self.refuse_reader(["longer than 1 s"], DLPRIM_READER_SECONDS="1",
                           **self.reader(f"answer({begins!r})\ntime.sleep(600)"))
        self.refuse_reader(["ended by signal", "Killed"], **self.reader("os.close(3); time.sleep(600)"))
        self.assertLess(time.monotonic() - begin, SECONDS)

    def test_a_reader_that_works_without_end_uses_up_its_time(self):
        self.refuse_reader([" s"], DLPRIM_READER_SECONDS="1", **self.reader("while True: pass"))

    def test_a_reader_that_eats_memory(self):
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("a sanitizer takes terabytes of addresses")
        eats = "import resource\nassert resource.getrlimit(resource.RLIMIT_AS)[0] == 256 << 20\n" \
               "try:\n    data = b'.' * (1 << 30)\nexcept MemoryError:\n    sys.exit(9)"
        self.refuse_reader(["exit code 9"], DLPRIM_READER_MIB="256", **self.reader(eats))
        # The real one, on a file that is larger than it may be.
        self.inputs = self.write_tensors("in.h5", x=np.zeros((2, 6), np.float32), more=np.zeros(300 << 18, np.float32))
        self.refuse_reader(["DLPRIM_READER_MIB"], DLPRIM_READER_MIB="256")
        # Memory of the command itself does not grow by what a reader claims to have.
        claims = tensors((b"x", 0, (1 << 20, 1 << 20), b"."))
        self.refuse_reader(["nonsense", "MiB"], **self.answers(claims))

    def test_a_reader_that_writes_files(self):
        self.refuse_reader(["exit code 8"], DLPRIM_READER_MIB="64", **self.reader(
            "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "try:\n    open(sys.argv[2] + '.big', 'wb').truncate(1 << 30)\nexcept OSError:\n    sys.exit(8)"))

    def test_answers_that_make_no_sense(self):
        x = (b"x", 0, (2, 6), X.tobytes())
        good = tensors(x)
        for words, data in (
                (["it ends early"], b""), (["it ends early"], good[:40]), (["it ends early"], good[:-8]),
                (["no beginning"], b"\0" * 64), (["no beginning"], b"<html>" * 20), (["no end"], good[:-8] + numbers(7)),
                (["more after its end"], good + b"."), (["another question"], numbers(MARK, STEPS, 0, END)),
                (["another question"], numbers(MARK, 99, 0, END)),
                (["where at most"], tensors((b"x", 99, (2, 6), b""))), (["where at most"], tensors((b"x", 0, (1,) * 9, b""))),
                (["too large"], tensors((b"x", 0, (1 << 40, 1 << 40), b""))),
                (["where at most"], tensors((b"x", 0, (2 ** 64 - 1,), b""))),
                (["where at most"], tensors(x, count=1 << 40)), (["where at most"], numbers(MARK, TENSORS, 1, 1 << 60)),
                (["a name twice"], tensors(x, x)), (["a name twice, or none"], tensors((b"", 0, (), bytes(4)))),
                (["where at most"], numbers(MARK, ERROR, 99) + text(b"!") + numbers(END)),
                (["where at most"], numbers(MARK, ERROR, 1) + text(b"!" * 100000) + numbers(END))):
            with self.subTest(words=words, data=data[:80]):
                self.refuse_reader(["nonsense", *words], **self.answers(data))
        # A sentence may hold anything, and stays one line without control characters.
        self.refuse(["in.h5 is bad"], *self.run_net("--untrusted"),
                    **self.answers(numbers(MARK, ERROR, 6) + text(b"in.h5 is bad\n\x1b[31m\r!") + numbers(END)))
        # What is well formed but does not fit the network is refused as from a file.
        self.refuse(["w.h5", "no parameters fc.0, fc.1", "does not have the file's x"], *self.run_net("--untrusted"),
                    **self.answers(good))

    def test_limits_that_are_no_numbers(self):
        for value in ("0", "-1", "many", "1e3"):
            self.refuse(["DLPRIM_READER_MIB", value], *self.run_net("--untrusted"), DLPRIM_READER_MIB=value)

    def test_nothing_is_left(self):
        before = {path.name for path in pathlib.Path("/tmp").glob("dlprim-reader-*")}
        self.refuse(["none.onnx"], "benchmark", "--untrusted", "cpu", self.write("none.onnx", b"no model"))
        after = {path.name for path in pathlib.Path("/tmp").glob("dlprim-reader-*")}
        self.assertLessEqual(after, before)


if __name__ == "__main__":
    main()
