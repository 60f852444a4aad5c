#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_run beside numpy: outputs, running statistics and gradients of small networks, by value."""
import numpy as np
from commands import DEVICE, DEVICES, CommandTest, main, network, operator

random = np.random.default_rng(1)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def convolve(x, w, b):
    """3 x 3, pad 1."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = x.shape[2:]
    y = sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + height, j:j + width], w[:, :, i, j])
            for i in range(3) for j in range(3))
    return y + b[None, :, None, None]


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def close(got, want, tolerance=2e-5):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


class Forward(CommandTest):
    net = network({"data": [2, 3, 8, 8]}, ["prob", "pool"],
                  operator("Convolution2D", "conv", "data", channels_out=5, kernel=3, pad=1, activation="relu"),
                  operator("Pooling2D", "pool", "conv", kernel=2, stride=2),
                  operator("InnerProduct", "fc", "pool", outputs=4),
                  operator("Softmax", "prob", "fc"))

    def setUp(self):
        super().setUp()
        self.w = {"conv.0": normal(5, 3, 3, 3), "conv.1": normal(5), "fc.0": normal(4, 80), "fc.1": normal(4)}
        self.path = self.write("net.json", self.net)
        self.weights = self.write_tensors("w.h5", **self.w)

    def want(self, x):
        conv = np.maximum(0, convolve(x, self.w["conv.0"], self.w["conv.1"]))
        pool = conv.reshape(len(x), 5, 4, 2, 4, 2).max(axis=(3, 5))
        return {"pool": pool, "prob": softmax(pool.reshape(len(x), -1) @ self.w["fc.0"].T + self.w["fc.1"])}

    def run_net(self, device, x, *more):
        return self.outputs_of(self.path, device, *more, weights=self.weights, inputs={"data": x})

    def test_precisions_of_operators(self):
        """On a CPU that passes for a GPU, which stores 16 bits between operators of the same precision."""
        net = self.write("mixed.json", network({"x": [4, 16, 32, 32]}, ["y"],
                                               operator("Activation", "act1", "x", activation="tanh"),
                                               operator("Pooling2D", "pool1", "act1", kernel=2, stride=2),
                                               operator("Activation", "act2", "pool1", activation="sigmoid"),
                                               operator("Pooling2D", "pool2", "act2", "y", kernel=2, stride=2, mode="avg")))
        x = self.write_tensors("x.h5", x=np.random.default_rng(1).standard_normal((4, 16, 32, 32)).astype(np.float32))

        def run(device, *precisions, **environment):
            flags = [word for precision in precisions for word in ("--precision", precision)]
            y = self.outputs_of(net, device, *flags, inputs=x, **environment)["y"]
            self.assertEqual(self.run_result.err, "")
            return y

        exact = run("cpu")
        np.testing.assert_array_equal(run("cpu", "fp16", "pool1=fp32"), exact)
        for device in DEVICES[1:]:
            gpu = {"DLPRIM_TRAITS": "wide_vectors=0,max_work_group=64"}
            plain, narrow = run(device, **gpu), run(device, "fp16", **gpu)
            half = run(device, "fp16", "pool1=fp32", **gpu)
            np.testing.assert_allclose(plain, exact, rtol=1e-5)
            # Values below 1 are stored as halves: act1's, pool1's and act2's; or act2's alone.
            for rounded, values in ((narrow, 3), (half, 1)):
                self.assertFalse(np.array_equal(rounded, plain))
                np.testing.assert_allclose(rounded, plain, rtol=values * 2 ** -11)
            self.assertFalse(np.array_equal(narrow, half))
            np.testing.assert_array_equal(run(device, "act2=fp16", "pool2=fp16", **gpu), half)
            np.testing.assert_array_equal(run(device, "pool1=fp32", "fp16", **gpu), half)
            np.testing.assert_array_equal(run(device, "fp16", "Pooling2D=fp32", **gpu), plain)
            np.testing.assert_array_equal(run(device, "pool1=fp16", **gpu), plain)
            self.assertFalse(np.array_equal(run(device, "fp16", "pool1=bf16", "act1=bf16", **gpu), half))

    def test_precisions_that_are_none(self):
        net = self.write("one.json", network({"x": [1, 2, 4, 4]}, ["y"], operator("Pooling2D", "pool", "x", "y", kernel=2)))
        x = self.write_tensors("one.h5", x=np.zeros((1, 2, 4, 4), np.float32))
        how = ("run", net, "-d", "cpu", "--inputs", x, "--outputs", self.folder / "y.h5", "--precision")
        self.refuse(["precision pol=fp16", "no operator 'pol'", "did you mean 'pool'"], *how, "pol=fp16")
        self.refuse(["precision Poolin=fp16", "did you mean 'Pooling'"], *how, "Poolin=fp16")
        for word in ("fp8", "pool=fp8", "pool=", "=fp16"):
            self.refuse(["--precision", f"'{word}'", "fp32, tf32, fp16 or bf16"], *how, word, code=2)
        self.refuse(["--precision", "twice"], *how, "fp16", "--precision", "fp32", code=2)
        result = self.succeed(*how, "LSTM=fp16")
        self.assertEqual(result.err, "note: precision LSTM=fp16: the network has no operator of this type\n")

    def test_outputs_of_every_name(self):
        x = normal(2, 3, 8, 8)
        for device in DEVICES:
            with self.subTest(device=device):
                got, want = self.run_net(device, x), self.want(x)
                self.assertEqual(sorted(got), sorted(want))
                for name in want:
                    close(got[name], want[name])
                    self.assertEqual(got[name].dtype, np.float32)

    def test_the_file_sets_the_batch(self):
        x = normal(3, 3, 8, 8)
        close(self.run_net("cpu", x)["prob"], self.want(x)["prob"])

    def test_it_says_nothing_but_writes(self):
        result = self.succeed("run", self.path, "-d", "cpu", "--weights", self.weights, "--inputs",
                              self.write_tensors("in.h5", data=normal(2, 3, 8, 8)), "--outputs", self.folder / "out.h5")
        self.assertEqual(result.out + result.err, "")
        self.assertEqual(self.listing(), ["in.h5", "net.json", "out.h5", "w.h5"])

    def test_devices_by_name(self):
        x = normal(2, 3, 8, 8)
        self.run_net("cpu", x, "--precision", "fp32")
        files = ("--weights", self.weights, "--inputs", self.folder / "in.h5", "--outputs", self.folder / "again.h5")
        for how in ([], ["-d", "cpu"]):
            self.succeed("run", self.path, *how, *files, DLPRIM_DEVICE="9:9" if how else "cpu")
            close(self.read_tensors("again.h5")["prob"], self.want(x)["prob"])
        if DEVICE in DEVICES:
            self.run_net("0:0", x)
        self.refuse(["9:9"], "run", self.path, *files, DLPRIM_DEVICE="9:9")

    def test_precisions(self):
        x = normal(2, 3, 8, 8)
        want = self.run_net("cpu", x)["prob"]
        for precision in ("tf32", "fp16", "bf16"):
            np.testing.assert_array_equal(self.run_net("cpu", x, "--precision", precision)["prob"], want)

    def test_weights_of_other_float_types(self):
        x = normal(2, 3, 8, 8)
        for dtype, tolerance in ((np.float16, 2e-2), (np.float64, 2e-5)):
            want = self.want(x)["prob"]
            self.weights = self.write_tensors("w.h5", **{k: v.astype(dtype) for k, v in self.w.items()})
            close(self.run_net("cpu", x)["prob"], want, tolerance)

    def test_weights_of_bfloat16(self):
        import h5py
        x = normal(2, 3, 8, 8)
        self.w = {name: (value.view(np.uint32) & 0xffff0000).view(np.float32) for name, value in self.w.items()}
        with h5py.File(self.folder / "w.h5", "w") as file:
            for name, value in self.w.items():
                file[name] = (value.view(np.uint32) >> 16).astype(np.uint16)
                file[name].attrs["dtype"] = "bfloat16"
        close(self.run_net("cpu", x)["prob"], self.want(x)["prob"])

    def test_params_by_other_names_groups_and_sharing(self):
        net = network({"x": [2, 6]}, ["y"],
                      operator("InnerProduct", "a", "x", outputs=6, params=["block/w", "block/b"], activation="tanh"),
                      operator("InnerProduct", "b", "a", "y", outputs=6, params=["block/w", "block/b"]))
        w, b, x = normal(6, 6), normal(6), normal(2, 6)
        outputs = self.outputs_of(net, "cpu", weights={"block/w": w, "block/b": b}, inputs={"x": x})
        close(outputs["y"], np.tanh(x @ w.T + b) @ w.T + b)

    def test_old_spellings(self):
        """In place, 0 for false, -1 for not given, an algorithm's name, a scalar of shape []."""
        net = network({"x": [2, 4], "s": [1]}, ["y", "t"],
                      operator("InnerProduct", "fc", "x", "y", outputs=3, bias=0),
                      operator("Activation", "act", "y", "y", activation="relu"),
                      operator("Slice", "t", "x", dim=1, begin=2, end=-1),
                      operator("Elementwise", "sum", "y s", "y", operation="sum"))
        net["operators"][0]["options"]["fwd_algo"] = "gemm"
        w, x = normal(3, 4), normal(2, 4)
        for scalar in (np.float32(2), np.array([2], np.float32)):
            outputs = self.outputs_of(net, "cpu", weights={"fc.0": w}, inputs={"x": x, "s": scalar})
            close(outputs["y"], np.maximum(0, x @ w.T) + 2)
            close(outputs["t"], x[:, 2:])


class Gradients(CommandTest):
    """InnerProduct and SoftmaxWithLoss, whose gradients fit two lines."""

    def run_net(self, device, loss, dy=None, frozen=False, label_dtype=("int", np.int32)):
        net = network({"x": [4, 6], "label": ([4], label_dtype[0])}, ["score", loss],
                      operator("InnerProduct", "fc", "x", "score", outputs=3, **({"frozen": True} if frozen else {})),
                      operator("SoftmaxWithLoss", "l", "score label", "loss"))
        self.x, self.label, self.w, self.b = normal(4, 6), np.array([0, 2, 1, 2]), normal(3, 6), normal(3)
        more = ["--output-grads", self.write_tensors("dy.h5", **dy)] if dy else []
        self.score = self.x @ self.w.T + self.b
        return self.outputs_of(net, device, "--grads", self.folder / "g.h5", *more, weights={"fc.0": self.w, "fc.1": self.b},
                               inputs={"x": self.x, "label": self.label.astype(label_dtype[1])}), self.read_tensors("g.h5")

    def check(self, gradients, weight, dscore=0.0):
        d = weight * (softmax(self.score) - np.eye(3)[self.label]) / 4 + dscore
        self.assertEqual(sorted(gradients), ["fc.0", "fc.1", "x"])
        close(gradients["x"], d @ self.w)
        close(gradients["fc.0"], d.T @ self.x)
        close(gradients["fc.1"], d.sum(axis=0))

    def test_a_loss_starts_backward(self):
        for device in DEVICES:
            outputs, gradients = self.run_net(device, "loss")
            close(outputs["loss"], [-np.log(softmax(self.score)[range(4), self.label]).mean()])
            self.assertEqual(outputs["loss"].shape, (1,))
            self.check(gradients, 1)

    def test_a_loss_weight(self):
        outputs, gradients = self.run_net("cpu", {"name": "loss", "loss_weight": 0.25})
        close(outputs["loss"], [-np.log(softmax(self.score)[range(4), self.label]).mean()])
        self.check(gradients, 0.25)

    def test_output_gradients_stand_in_the_place_of_weights(self):
        for device in DEVICES:
            dscore = normal(4, 3)
            _, gradients = self.run_net(device, {"name": "loss", "loss_weight": 0.25}, dict(score=dscore, loss=np.float32(3)))
            self.check(gradients, 3, dscore)

    def test_an_output_gradient_that_is_absent_is_the_weight(self):
        dscore = normal(4, 3)
        _, gradients = self.run_net("cpu", "loss", dict(score=dscore))
        self.check(gradients, 1, dscore)

    def test_labels_may_be_floats_that_hold_integers(self):
        for device in DEVICES:
            _, gradients = self.run_net(device, "loss", label_dtype=("float", np.float32))
            close(gradients.pop("label"), np.zeros(4))  # every float input has a gradient
            self.check(gradients, 1)

    def test_labels_of_any_integer_type_in_the_file(self):
        for dtype in (np.int64, np.uint8):
            self.check(self.run_net("cpu", "loss", label_dtype=("int", dtype))[1], 1)

    def test_a_label_that_the_type_does_not_hold_is_refused(self):
        # As int32 it would be the label 1.
        net = network({"x": [2, 3], "label": ([2], "int")}, ["loss"], operator("SoftmaxWithLoss", "l", "x label", "loss"))
        labels = np.array([2, 2**32 + 1])
        for device in DEVICES:
            self.refuse(["'label'", "4294967297", "position 1", "int32"], "run", self.write("net.json", net), "-d", device,
                        "--inputs", self.write_tensors("in.h5", x=normal(2, 3), label=labels),
                        "--outputs", self.folder / "out.h5")

    def test_a_frozen_operator_has_none(self):
        _, gradients = self.run_net("cpu", "loss", frozen=True)
        self.assertEqual(list(gradients), ["x"])


class Training(CommandTest):
    """BatchNorm: batch statistics with --train, running ones without, both ways."""

    def run_net(self, device, *how, **options):
        net = network({"x": [4, 3, 2, 5]}, ["y"], operator("BatchNorm", "bn", "x", "y", **options))
        self.x, self.mean, self.variance = 2 * normal(4, 3, 2, 5) + 1, normal(3), normal(3) ** 2 + 0.5
        self.scale, self.offset, self.dy = normal(3), normal(3), normal(4, 3, 2, 5)
        weights = {"bn.0": self.mean, "bn.1": self.variance, "bn.2": self.scale, "bn.3": self.offset}
        return self.outputs_of(net, device, "--output-grads", self.write_tensors("dy.h5", y=self.dy), "--grads",
                               self.folder / "g.h5", *how, weights=weights, inputs={"x": self.x}), self.read_tensors("g.h5")

    def check(self, outputs, gradients, mean, variance, batch):
        per = [None, slice(None), None, None]
        sigma = np.sqrt(variance + 1e-5)[tuple(per)]
        hat = (self.x - mean[tuple(per)]) / sigma
        scale = self.scale[tuple(per)]
        close(outputs["y"], hat * scale + self.offset[tuple(per)])
        dx = self.dy * scale / sigma
        if batch:
            dx -= scale / sigma * (self.dy.mean(axis=(0, 2, 3), keepdims=True) +
                                   hat * (self.dy * hat).mean(axis=(0, 2, 3), keepdims=True))
        close(gradients["x"], dx)
        return hat

    def test_evaluation(self):
        for device in DEVICES:
            outputs, gradients = self.run_net(device, momentum=0.25)
            hat = self.check(outputs, gradients, self.mean, self.variance, batch=False)
            self.assertEqual(list(outputs), ["y"])
            self.assertEqual(sorted(gradients), ["bn.2", "bn.3", "x"])
            close(gradients["bn.2"], (self.dy * hat).sum(axis=(0, 2, 3)))
            close(gradients["bn.3"], self.dy.sum(axis=(0, 2, 3)))

    def test_training_writes_the_running_statistics(self):
        for device in DEVICES:
            outputs, gradients = self.run_net(device, "--train", momentum=0.25)
            hat = self.check(outputs, gradients, self.x.mean(axis=(0, 2, 3)), self.x.var(axis=(0, 2, 3)), batch=True)
            self.assertEqual(sorted(outputs), ["bn.0", "bn.1", "y"])
            close(outputs["bn.0"], 0.75 * self.mean + 0.25 * self.x.mean(axis=(0, 2, 3)))
            close(outputs["bn.1"], 0.75 * self.variance + 0.25 * self.x.var(axis=(0, 2, 3), ddof=1))
            close(gradients["bn.2"], (self.dy * hat).sum(axis=(0, 2, 3)))

    def test_frozen_in_training(self):
        outputs, gradients = self.run_net("cpu", "--train", frozen=True)
        self.check(outputs, gradients, self.mean, self.variance, batch=False)
        self.assertEqual((list(outputs), list(gradients)), (["y"], ["x"]))


class Usage(CommandTest):
    def test_help(self):
        for command in ("run", "benchmark", "train", "flops", "tune"):
            for option in ("-h", "--help"):
                result = self.succeed(command, option)
                self.assertIn(f"Usage: dlprim_{command}", result.out)
                self.assertIn("exit code: 0 success; 1 failure, with one line on stderr; 2 wrong usage", result.out)
                self.assertEqual(result.err, "")

    def test_wrong_usage_is_2_and_at_most_three_lines(self):
        for words, command, *arguments in (
                (["NET"], "run"), (["--inputs"], "run", "net.json"), (["--outputs"], "run", "net.json", "--inputs", "a"),
                (["--grads"], "run", "net.json", "--inputs", "a", "--outputs", "b", "--output-grads", "c"),
                (["--nonsense"], "run", "net.json", "--inputs", "a", "--outputs", "b", "--nonsense"),
                (["--precision", "fp8"], "run", "net.json", "--inputs", "a", "--outputs", "b", "--precision", "fp8"),
                (["--engine"], "run", "net.json", "--inputs", "a", "--outputs", "b", "--engine", "conv"),
                (["NET"], "benchmark", "cpu"), (["-a", "-g"], "benchmark", "-a", "-g", "cpu", "net.json"),
                (["-B"], "benchmark", "-B0", "cpu", "net.json"), (["-i"], "benchmark", "-ifew", "cpu", "net.json"),
                (["extra"], "benchmark", "cpu", "net.json", "w.h5", "extra"),
                (["CONFIG"], "train"), (["--epochs"], "train", "train.json", "--epochs", "-1"),
                (["NET"], "flops"), (["--weights"], "flops", "net.json", "--weights", "w.h5"),
                (["--device"], "tune", "net.json"), (["NET, --prewarm, --import, --export or --share"], "tune", "-d", "cpu"),
                (["--seconds"], "tune", "net.json", "-d", "cpu", "--seconds", "0")):
            with self.subTest(command=command, arguments=arguments):
                result = self.refuse(words, command, *arguments, code=2)
                self.assertEqual(result.out, "")
                self.assertIn("-h", result.err)


if __name__ == "__main__":
    main()
