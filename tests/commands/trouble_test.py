#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When the machine is the trouble: devices that are not there, full disks, folders that cannot be written, caches that
are damaged or shared, too little memory. What was there before stays, and nothing half written is left."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import unittest

import numpy as np
from commands import DEVICE, DEVICES, ROOT, SECONDS, TOOLS, CommandTest, main, network, operator
from training_runs import write_smallest

NET = network({"x": [2, 6]}, ["y"], operator("InnerProduct", "fc", "x", outputs=3), operator("Softmax", "y", "fc"))


class Trouble(CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", NET)
        self.weights = self.write_tensors("w.h5", fc__0=np.ones((3, 6), np.float32), fc__1=np.zeros(3, np.float32))
        self.inputs = self.write_tensors("in.h5", x=np.ones((2, 6), np.float32))

    def run_net(self, device, outputs, *more):
        return ("run", self.net, "-d", device, "--weights", self.weights, "--inputs", self.inputs, "--outputs", outputs, *more)

    def check_outputs(self, path="out.h5"):
        np.testing.assert_allclose(self.read_tensors(path)["y"], np.full((2, 3), 1 / 3), rtol=1e-6)


class Devices(Trouble):
    def test_devices_that_are_not_there(self):
        for device in ("9:9", "0:99", "9:0", "-1:0", "0:x", "no such device", "99999999999999999999:0", ":"):
            with self.subTest(device):
                words = [f"no device '{device}'", "there are: ", "cpu = ", "(the host)"] + (["0:0 = "] if DEVICES[1:] else [])
                self.refuse(words, *self.run_net(device, self.folder / "out.h5"))
                self.refuse(words, "benchmark", "--", device, self.net)
                self.refuse(words, "flops", self.net, "-d", device)
                self.refuse(words, "train", self.write("train.json", {}), "-d", device)
                self.refuse(words + ["DLPRIM_DEVICE"], "flops", self.net, DLPRIM_DEVICE=device)
        self.assertEqual(self.listing(), ["in.h5", "net.json", "train.json", "w.h5"])

    def test_platforms_that_cannot_be_loaded(self):
        vendors = self.write("vendors/broken.icd", "libnosuchopencl.so\n").parent
        self.write("vendors/text.icd", str(self.net))
        environment = dict(OCL_ICD_VENDORS=str(vendors), OPENCL_VENDOR_PATH=str(vendors))
        self.succeed(*self.run_net("cpu", self.folder / "out.h5"), **environment)
        self.check_outputs()
        (self.folder / "none").mkdir()
        for more in (environment, dict(OCL_ICD_VENDORS=str(self.folder / "none"), OPENCL_VENDOR_PATH=str(self.folder / "none"))):
            for device in ("opencl", "gpu", "0:0"):
                self.refuse([f"no device '{device}'", "there are: cpu = ", "no OpenCL platform is installed",
                             "apt install pocl-opencl-icd", "device cpu (the host) works without"],
                            *self.run_net(device, self.folder / "out.h5"), **more)
        self.succeed("run", *self.run_net("", self.folder / "out.h5")[1:2], *self.run_net("", self.folder / "out.h5")[4:],
                     **environment, DLPRIM_DEVICE="")


class Outputs(Trouble):
    def test_outputs_that_cannot_be_written(self):
        (self.folder / "folder").mkdir()
        before = self.listing()
        for path, words in ((self.folder / "none/out.h5", ["out.h5", "folder does not exist"]),
                            (self.folder / "folder", ["folder"]), ("/proc/out.h5", ["/proc/out.h5"]),
                            (self.folder / "w.h5/out.h5", ["out.h5"]), ("", ["empty"])):
            with self.subTest(path):
                self.refuse(words, *self.run_net("cpu", path))
        self.refuse(["g.h5"], *self.run_net("cpu", self.folder / "out.h5", "--grads", self.folder / "none/g.h5"))
        self.assertEqual(self.listing(), before, "nor outputs without the gradients")
        for option in ("--json", "--trace"):
            for path, words in ((self.folder / "none/b.json", ["b.json"]), (self.folder / "folder", ["folder"])):
                self.refuse(words, "benchmark", "-i1", "-w1", option, path, "cpu", self.net)
        self.assertEqual(self.listing(), before)

    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            for arguments in (["flops", self.net, "-d", "cpu"], ["benchmark", "-i1", "-w1", "cpu", self.net]):
                done = subprocess.run([TOOLS / f"dlprim_{arguments[0]}", *arguments[1:]], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)

    def limited(self, arguments, kilobytes):
        """Files of at most so many kilobytes: how a disk fills up, without a disk."""
        limit = kilobytes * 1024
        done = subprocess.run([TOOLS / f"dlprim_{arguments[0]}", *arguments[1:]], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), f"{done}")
        return done.stderr

    def test_a_full_disk_leaves_what_was_there(self):
        self.write("net.json", network({"x": [2000, 600]}, ["y"], operator("Activation", "y", "x", activation="relu")))
        self.inputs = self.write_tensors("in.h5", x=np.ones((2000, 600), np.float32))
        before = self.write("out.h5", b"what was there before").read_bytes()
        for kilobytes in (0, 4, 300, 2000, 4700):
            self.assertIn("out.h5", self.limited(["run", self.net, "-d", "cpu", "--inputs", self.inputs, "--outputs",
                                                  self.folder / "out.h5"], kilobytes))
            self.assertEqual((self.folder / "out.h5").read_bytes(), before)
            self.assertEqual(self.listing(), ["in.h5", "net.json", "out.h5", "w.h5"])

    def test_a_disk_that_is_full(self):
        disk = self.mounted("size=64k")
        (disk / "out.h5").write_text("before")
        self.refuse(["out.h5", "disk is full"], *self.run_net("cpu", disk / "out.h5"))
        self.assertEqual((disk / "out.h5").read_text(), "before")
        self.assertEqual(os.listdir(disk), ["out.h5"])

    def test_training_into_what_cannot_be_written(self):
        config = write_smallest(self)
        self.refuse(["w.h5"], "train", config, "-d", "cpu", "--out", self.weights)
        self.refuse(["/proc/out"], "train", config, "-d", "cpu", "--out", "/proc/out")
        self.succeed("train", config, "-d", "cpu", "--out", self.folder / "out")
        before = {path: path.read_bytes() for path in (self.folder / "out").iterdir()}
        for kilobytes in (0, 100):
            self.limited(["train", config, "-d", "cpu", "--out", self.folder / "out"], kilobytes)
            kept = {path: path.read_bytes() for path in (self.folder / "out").iterdir()}
            self.assertEqual(sorted(kept), sorted(before), "no temporary file is left")
            self.assertEqual(kept[self.folder / "out/model.h5"], before[self.folder / "out/model.h5"])


@unittest.skipUnless(DEVICE in DEVICES[1:], "no OpenCL device")
class Caches(Trouble):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.kernels = self.cache / "kernels"

    def run_cached(self, cache=None):
        result = self.succeed(*self.run_net(DEVICE, self.folder / "out.h5"), DLPRIM_CACHE_DIR=str(cache or self.cache))
        self.assertEqual(result.err, "")
        self.check_outputs()

    def test_a_damaged_cache_is_made_anew(self):
        self.run_cached()
        files = sorted(self.kernels.iterdir())
        good = [path.read_bytes() for path in files]
        self.assertGreater(len(files), 0)
        for damage in (lambda data: b"", lambda data: data[:len(data) // 2], lambda data: b"x" * len(data),
                       lambda data: data[:-8] + b"\0" * 8, lambda data: data[:60] + b"\xff" * 16 + data[76:]):
            for path, data in zip(files, good):
                path.write_bytes(damage(data))
            self.run_cached()
            self.assertEqual([path.stat().st_size for path in files], [len(data) for data in good])
            self.assertEqual(sorted(self.kernels.iterdir()), files)

    def test_a_folder_in_the_place_of_a_cached_file(self):
        self.run_cached()
        for path in self.kernels.iterdir():
            path.unlink()
            path.mkdir()
        self.run_cached()

    def test_caches_that_cannot_be_written(self):
        for cache in (self.write("file", "not a folder"), pathlib.Path("/proc/cache"), pathlib.Path("/dev/full")):
            self.run_cached(cache)
        self.cache.mkdir()
        self.cache.chmod(0o500)
        self.run_cached()
        self.cache.chmod(0o700)

    def test_a_cache_on_a_full_disk(self):
        self.run_cached(self.mounted("size=4k"))

    def test_processes_at_once_with_a_cold_cache(self):
        environment = os.environ | dict(DLPRIM_CACHE_DIR=str(self.cache))
        processes = []
        for i in range(4):
            command = self.run_net(DEVICE, self.folder / f"out{i}.h5")
            processes.append(subprocess.Popen([TOOLS / f"dlprim_{command[0]}", *command[1:]], env=environment,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for i, process in enumerate(processes):
            out, err = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, out, err), (0, b"", b""))
            self.check_outputs(f"out{i}.h5")
        self.assertEqual({path.suffix for path in self.kernels.iterdir()}, {".bin"}, "no temporary is left")
        self.run_cached()


@unittest.skipUnless(DEVICE in DEVICES[1:], "no OpenCL device")
class Kernels(Trouble):
    """Kernels from a folder where some do not build: DLPRIM_KERNELS_DIR."""

    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", network({"x": [2, 16, 12, 12]}, ["y"],
                                                  operator("Convolution2D", "y", "x", channels_out=32, kernel=3)))
        random = np.random.default_rng(1)
        values = {"w": {"y.0": [32, 16, 3, 3], "y.1": [32]}, "in": {"x": [2, 16, 12, 12]}, "dy": {"y": [2, 32, 10, 10]}}
        self.weights, self.inputs, self.dy = (
            self.write_tensors(f"{file}.h5", **{name: random.standard_normal(shape).astype(np.float32)
                                                for name, shape in tensors.items()}) for file, tensors in values.items())
        self.arguments = self.run_net(DEVICE, self.folder / "out.h5", "--output-grads", self.dy, "--grads", self.folder / "g.h5")
        self.succeed(*self.arguments)
        self.expected = self.read_tensors("out.h5"), self.read_tensors("g.h5")
        (self.folder / "out.h5").unlink()
        (self.folder / "g.h5").unlink()
        self.cache = self.folder / "cache"
        self.environment = dict(DLPRIM_CACHE_DIR=str(self.cache), DLPRIM_KERNELS_DIR=str(self.folder / "kernels"))

    def spoil(self, wanted):
        """Convolution's kernels that are `wanted` do not build; the name that they lack."""
        shutil.copytree(ROOT / "kernels/conv2d", self.folder / "kernels/conv2d", dirs_exist_ok=True)
        for path in (self.folder / "kernels/conv2d").glob("*.cl"):
            if wanted(path.stem):
                path.write_text(path.read_text() + "\nkernel void spoilt() { no_such_function_as_this = 1; }\n")

    def check_log(self, sentence):
        """The first log that the sentence gives is there, and says what the compiler said and of what."""
        path = re.search("its log is in '([^']+)'", sentence)[1]
        self.assertTrue(path.startswith(str(self.cache / "logs")), path)
        log = pathlib.Path(path).read_text()
        for words in ("no_such_function_as_this", "program: conv2d/", "device: ", "result: CL_BUILD_PROGRAM_FAILURE", "source:"):
            self.assertIn(words, log)

    def test_the_next_engine_takes_the_place_of_one_that_does_not_build(self):
        self.spoil(lambda stem: stem != "reference")
        for _ in range(2):  # nothing of it is remembered in the cache
            result = self.succeed(*self.arguments, **self.environment)
            # What is left is slow, which is another note.
            lines = [line for line in result.err.splitlines() if "network's time in reference engines" not in line]
            self.assertGreaterEqual(len(lines), 3, "a note an engine, of the convolution and its gradients")
            for line in lines:
                self.assertRegex(line, r"^note: \[Convolution2D\w* '.*'\] engine conv2d\S+ is not used: it failed on this device: "
                                       r"kernel program 'conv2d/\w+\.cl' does not build on .*error.*; its log is in '")
                self.assertNotIn(".reference", line)
                self.check_log(line)
            found = self.read_tensors("out.h5"), self.read_tensors("g.h5")
            for tensors, expected in zip(found, self.expected):
                self.assertEqual(sorted(tensors), sorted(expected))
                for name in expected:
                    np.testing.assert_allclose(tensors[name], expected[name], atol=1e-5 * abs(expected[name]).max())
        shown = self.succeed("benchmark", "-i1", "-w1", "-t", DEVICE, self.net, **self.environment)
        self.assertRegex(shown.out, "note: .*its log is in '")
        self.assertIn("conv2d.reference", shown.out)
        self.assertEqual(shown.err, "")

    def test_no_engine_is_left(self):
        self.spoil(lambda stem: True)
        before = self.listing()
        for arguments in (self.arguments, ("benchmark", DEVICE, self.net)):
            error = self.refuse(["[Convolution2D 'y']", "no engine on this device can run it", "conv2d.reference: it failed",
                                 "more failed", "not apply", "error"], *arguments, **self.environment).err
            self.check_log(error)
        self.assertEqual([name for name in self.listing() if not name.startswith("cache")], before)

    def test_an_engine_that_is_forced(self):
        self.spoil(lambda stem: stem == "implicit_gemm")
        error = self.refuse(["[Convolution2D 'y']", "conv2d.implicit_gemm", "does not build"], *self.arguments, "--engine",
                            "y=conv2d.implicit_gemm", **self.environment).err
        self.check_log(error)


class Memory(Trouble):
    def fitting_batch(self, words, *arguments, **environment):
        """The batch that the sentence about too large a one says would fit."""
        error = self.refuse(["needs", "MiB", "the device", *words, "the largest batch that fits is "], *arguments,
                            **environment).err
        return int(re.search(r"the largest batch that fits is (?:about )?(\d+)$", error)[1])

    def check_fits(self, batch, net, *arguments, **environment):
        """A batch like `batch` fits, and one that is larger by a tenth does not."""
        self.assertGreater(batch, 10)
        self.succeed("flops", net, "-B", batch - batch // 20, *arguments, **environment)
        self.refuse(["needs"], "flops", net, "-B", batch + batch // 10, *arguments, **environment)

    def test_a_batch_beyond_memory(self):
        net = self.write("net.json", network({"x": [2, 64, 256, 256]}, ["y"],
                                             operator("Convolution2D", "conv", "x", "y", channels_out=64, kernel=3)))
        for device in DEVICES:
            for flags in ([], ["-b"], ["-a"]):
                fits = self.fitting_batch(["(largest: 'x' ", "the device has "], "benchmark", *flags, "-B1048576", device, net)
                self.assertGreater(fits, 1)
            self.refuse(["needs"], "flops", net, "-d", device, "-B", "1048576")

    def test_a_batch_beyond_one_allocation(self):
        net = self.write("net.json", network({"x": [2, 1, 64, 64]}, ["y"],
                                             operator("Convolution2D", "wide", "x", channels_out=64, kernel=3),
                                             operator("Pooling2D", "y", "wide", kernel=62)))
        for device in DEVICES:
            how = ["-d", device]
            # Of ten times as many samples both the sum and the largest piece are too large.
            for traits, batch, words in (("max_alloc_mib=100", "120", ["in one allocation", "per allocation", "'wide'"]),
                                         ("max_alloc_mib=100,global_mib=400", "2000", ["(largest: "])):
                fits = self.fitting_batch(words, "flops", net, *how, "-B", batch, DLPRIM_TRAITS=traits)
                self.assertLess(fits, 120)
                self.check_fits(fits, net, *how, DLPRIM_TRAITS=traits)

    def test_parameters_beyond_memory(self):
        net = self.write("net.json", network({"x": [1, 2 ** 20]}, ["y"], operator("InnerProduct", "y", "x", outputs=2 ** 30)))
        for device in DEVICES:
            for flags in ([], ["-a"]):
                self.refuse(["[InnerProduct 'y']", "'y.0'", "needs 4294967296 MiB", "the device has "], "benchmark", *flags,
                            "-i1", "-w1", device, net)

    def test_a_declared_input_beyond_memory(self):
        net = self.write("net.json", network({"x": [2 ** 20, 2 ** 21]}, ["y"], operator("Activation", "y", "x", activation="relu")))
        for device in DEVICES:
            self.fitting_batch(["(largest: 'x' 8388608.0 MiB, 'y' "], "benchmark", device, net)


class Labels(Trouble):
    def test_labels_out_of_range(self):
        """On every device, of every operator that takes them."""
        x, table = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
        rows = {"SoftmaxWithLoss": operator("SoftmaxWithLoss", "loss", "x label"),
                "NLLLoss": operator("NLLLoss", "loss", "x label"),
                "Embedding": operator("Embedding", "loss", "label", num_embeddings=3, embedding_dim=4)}
        labels = [("int", np.int32, 3), ("int", np.int32, -1), ("int64", np.int64, 2 ** 40), ("float", np.float32, 3)]
        fractions = [("float", np.float32, 1.5), ("float", np.float32, np.nan), ("float", np.float32, np.inf)]
        for device in DEVICES:
            for name, op in rows.items():
                self.write_tensors("w.h5", **({"loss__0": table} if name == "Embedding" else {}))
                for dtype, kind, value in labels + fractions:
                    with self.subTest(device=device, operator=name, dtype=dtype, value=value):
                        inputs = {"x": [2, 3], "label": ([2], dtype)} if name != "Embedding" else {"label": ([2], dtype)}
                        self.write("net.json", network(inputs, ["loss"], op))
                        self.write_tensors("in.h5", x=x, label=np.array([1, value], kind))
                        self.refuse(["'label'", f"{value}", "position 1", "0 to 2"], *self.run_net(device, self.folder / "out.h5"))
                        self.assertFalse((self.folder / "out.h5").exists())


if __name__ == "__main__":
    main()
