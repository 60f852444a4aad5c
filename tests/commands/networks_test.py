#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small networks of attention, shifted windows and norms of channels give PyTorch's outputs and gradients: those that
tests/golden/make_networks.py makes, by dlprim_run. The host runs all of them. Compiling for all takes minutes on other
devices, which take a training step of two; DLPRIM_TEST_NETWORKS=all asks them for everything."""
import json
import os

import h5py
import numpy as np
from commands import DEVICES, ROOT, SECONDS, CommandTest, call, main

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


if __name__ == "__main__":
    main()
