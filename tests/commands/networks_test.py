#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small networks of attention, shifted windows and norms of channels give PyTorch's outputs and gradients: those that
tests/golden/make_networks.py makes, by dlprim_run. The host runs all of them. Compiling for all takes minutes on other
devices, which take a training step of two; DLPRIM_TEST_NETWORKS=all asks them for everything."""
import json
import os

import h5py
import numpy as np
from commands import DEVICES, ROOT, SECONDS, CommandTest, call, main, network, operator

BOUND = 1e-4  # of a tensor's largest magnitude, as scripts/compare_networks.py has it
NAMES = sorted(path.stem for path in (ROOT / "tests/golden").glob("tiny_*.h5"))


class Networks(CommandTest):
    def close(self, found, expected, largest, what):
        """Within the bound. A gradient that is zero but for float64's rounding (of an offset that a batch norm takes away
        again) is measured by the network's largest gradient."""
        scale = float(np.abs(expected).max())
        scale = scale if scale > 1e-12 * largest else largest
        error = float(np.abs(found - expected).max()) / scale
        self.assertLessEqual(error, BOUND, f"{what}: off by {error:.1e} of its largest magnitude")

    def compare(self, name, device, training):
        mode = "training" if training else "evaluation"
        golden = self.read_tensors(ROOT / f"tests/golden/{name}.h5")
        part = lambda prefix: {key[len(prefix):]: value for key, value in golden.items() if key.startswith(prefix)}  # noqa: E731
        net = json.loads((ROOT / f"tests/nets/{name}.json").read_text())
        output = net["outputs"][0]
        # As PyTorch was asked: gradients of the logits, no loss.
        net["outputs"] = [output]
        net["inputs"] = net["inputs"][:1]
        net["operators"] = [operator for operator in net["operators"] if operator["name"] != "loss"]
        self.write("net.json", net)
        for file, tensors in (("weights.h5", part("weights/")), ("in.h5", part("inputs/")),
                              ("dy.h5", {output: golden[f"{mode}/output_gradient"]})):
            with h5py.File(self.folder / file, "w") as opened:
                for key, value in tensors.items():
                    opened[key] = value
        files = [word for key, file in (("weights", "weights.h5"), ("inputs", "in.h5"), ("outputs", "out.h5"),
                                        ("output-grads", "dy.h5"), ("grads", "grads.h5"))
                 for word in (f"--{key}", self.folder / file)]
        result = call("run", self.folder / "net.json", "-d", device, *files, *(["--train"] if training else []),
                      timeout=10 * SECONDS)
        self.assertEqual(result.code, 0, result.err)
        what = f"{name}, {mode}, {device}"
        self.close(self.read_tensors("out.h5")[output], golden[f"{mode}/output"], 0, f"{what}, output")
        expected, found = part(f"{mode}/gradients/"), self.read_tensors("grads.h5")
        self.assertEqual(set(expected), set(found), what)
        largest = max(float(np.abs(value).max()) for value in expected.values())
        for key, value in expected.items():
            self.close(found[key], value, largest, f"{what}, gradient of {key}")

    def test_networks_give_pytorchs_results(self):
        self.assertEqual(NAMES, ["tiny_convnext", "tiny_maxvit", "tiny_swin", "tiny_swin_v2", "tiny_vit"])
        for device in DEVICES:
            everything = device == "cpu" or os.environ.get("DLPRIM_TEST_NETWORKS") == "all"
            for name in NAMES if everything else ["tiny_swin", "tiny_vit"]:
                for training in (False, True) if everything else (True,):
                    with self.subTest(name=name, device=device, training=training):
                        self.compare(name, device, training)

    def test_gradient_shown_beside_one_worked_in_place(self):
        """At batch 1 the offset's gradient is dy itself, in one kernel with the input's, which is worked over dy."""
        parameters = [{"name": name, "type": "Parameter", "inputs": [], "outputs": [name], "options": {"shape": [4, 1, 1]}}
                      for name in ("scale", "offset")]
        net = network({"data": [1, 4, 1, 1]}, ["fc"], *parameters,
                      operator("Pointwise", "norm", "data scale offset", code="y0 = x0 * x1 + x2"),
                      operator("Flatten", "flat", "norm"),
                      operator("InnerProduct", "fc", "flat", outputs=3))
        random = np.random.default_rng(5)
        weights = {"scale__0": (4, 1, 1), "offset__0": (4, 1, 1), "fc__0": (3, 4), "fc__1": (3,)}
        weights = {key: random.normal(size=shape).astype("f4") for key, shape in weights.items()}
        x, dy = random.normal(size=(1, 4, 1, 1)).astype("f4"), random.normal(size=(1, 3)).astype("f4")
        self.write("net.json", net)
        self.write_tensors("weights.h5", **weights)
        self.write_tensors("in.h5", data=x)
        self.write_tensors("dy.h5", fc=dy)
        behind = (dy @ weights["fc__0"]).reshape(4, 1, 1)
        for device in DEVICES:
            with self.subTest(device=device):
                self.succeed("run", self.folder / "net.json", "-d", device, "--weights", self.folder / "weights.h5",
                             "--inputs", self.folder / "in.h5", "--outputs", self.folder / "out.h5",
                             "--output-grads", self.folder / "dy.h5", "--grads", self.folder / "grads.h5")
                found = self.read_tensors("grads.h5")
                self.close(found["offset.0"], behind, 0, "offset")
                self.close(found["scale.0"], behind * x[0], 0, "scale")
                self.close(found["data"], (behind * weights["scale__0"])[None], 0, "data")


if __name__ == "__main__":
    main()
