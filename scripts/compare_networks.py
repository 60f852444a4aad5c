#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares networks' outputs and gradients with PyTorch in float64.

    compare_networks.py [NAME ...] --run build/tools/dlprim_run -d opencl
    compare_networks.py efficientnet_b0 --mode training --seed 3 -v

Each network runs with the same random weights, inputs and output gradients here and there: in inference (outputs
alone), in evaluation and in training mode; dropout is 0. --seed draws other inputs and output gradients. A tensor is
within bounds where it differs by at most 1e-4 of its largest magnitude, or twice the error of PyTorch's own float32
where that is larger.

The plain comparison is with the network as it is. But a ReLU or a max pooling decides, and rounding turns a few
decisions among millions: PyTorch's float32 and float64 take different ones, too. One turned decision in a deep
layer moves gradients by far more than 1e-4, with nothing computed wrongly. Hence the matched comparison: the run
also writes what each such operator returned (for a max pooling, what it read), and PyTorch evaluates the network
in float64, and for the bound in float32, with the decisions that the run took. Each decision that is not
float64's own must be marginal: the value decided on is as near to where the other branch begins as a tensor may
be from float64's, 1e-4 of its largest magnitude or twice the error of PyTorch's own float32 there (a value that is
farther away and turns is itself out of bounds). A network agrees if it is within bounds plainly, or matched with
marginal turns alone.

-v shows, of the matched comparison (in inference there is one alone), the tensors nearest to their bounds with the
run's error and that of PyTorch's float32, and the geometric mean of the former over the latter, over all tensors.

Needs torch, torchvision, h5py.
"""
import argparse
import copy
import math
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import torch.fx
import torch.nn.functional as F
import torchvision_net
from torch import nn
from torchvision_net import torchvision

# Where a function's branches meet, with a predicate on recorded outputs (and x): above that point or not.
BRANCHES = {
    "relu": [(0.0, lambda y, x: y > 0)],
    "relu6": [(0.0, lambda y, x: y > 0), (6.0, lambda y, x: y >= 6)],
    "hardswish": [(-3.0, lambda y, x: (y != 0) | (x > -1.5)), (3.0, lambda y, x: y >= 3)],
    "hardsigmoid": [(-3.0, lambda y, x: y > 0), (3.0, lambda y, x: y >= 1)],
}
# The functions from the branches that the run took.
PIECES = {
    "relu": lambda x, low: torch.where(low, x, 0.0),
    "relu6": lambda x, low, high: torch.where(high, 6.0, torch.where(low, x, 0.0)),
    "hardswish": lambda x, low, high: torch.where(high, x, torch.where(low, x * (x + 3) / 6, 0.0)),
    "hardsigmoid": lambda x, low, high: torch.where(high, 1.0, torch.where(low, (x + 3) / 6, 0.0)),
}


class Turns:
    """Decisions that differ from those of float64, and how far from marginal they are, in shares of the largest
    magnitude of the tensor decided on."""

    def __init__(self):
        self.taken = self.turned = 0
        self.worst = {}  # by node, of those with turned decisions
        self.seen = {}  # by node: the tensor
        self.single = {}  # by node: the error of PyTorch's float32

    def add(self, name, x, turned, distance):
        """turned: mask; distance: how far each value is from the other branch."""
        self.taken += turned.numel()
        self.seen[name] = x
        count = int(turned.sum())
        if count == 0:
            return
        self.turned += count
        self.worst[name] = max(self.worst.get(name, 0.0), float(distance[turned].max() / x.abs().max()))

    def compare(self, name, x):
        """x: the same tensor as PyTorch's float32 has it."""
        exact = self.seen[name]
        self.single[name] = float((x.double() - exact).abs().max() / exact.abs().max())

    def farthest(self, margin):
        """The node whose decisions are farthest from marginal: its name, how far, and what is marginal there."""
        bound = {name: max(margin, 2 * self.single[name]) for name in self.worst}
        name = max(self.worst, key=lambda name: self.worst[name] / bound[name])
        return name, self.worst[name], bound[name]


class Matched(torch.fx.Interpreter):
    """The network with the decisions that a run recorded. In float64 `turns` learns of them, in float32 how far
    PyTorch's tensors are from those."""

    def __init__(self, exporter, recorded, turns, single):
        super().__init__(exporter.traced)
        self.model = exporter.model
        self.decisions, self.recorded, self.turns, self.single = exporter.decisions, recorded, turns, single

    def run_node(self, node):
        if node.op == "get_attr":  # of the model, which may have changed the type of its buffers since it was traced
            at, _, name = node.target.rpartition(".")
            return getattr(self.model.get_submodule(at), name)
        if node not in self.decisions:
            return super().run_node(node)
        kind, tensor, options = self.decisions[node]
        x = self.env[node.args[0]]
        seen = torch.from_numpy(self.recorded[tensor]).to(x.device)
        if self.single:
            self.turns.compare(node.name, x.detach())
        if kind == "max_pool":
            return self.pool(node.name, x, seen, options)
        seen = seen.reshape(x.shape)  # it may be a matrix of x's rows
        taken = []
        for point, above in BRANCHES[kind]:
            taken.append(above(seen, x.detach()))
            if not self.single:
                with torch.no_grad():
                    self.turns.add(node.name, x.detach(), taken[-1] != (x > point), (x - point).abs())
        return PIECES[kind](x, *taken)

    def pool(self, name, x, seen, options):
        window = {key: options[name] for key, name in (("kernel_size", "kernel"), ("stride", "stride"), ("padding", "pad"))}
        window.update(ceil_mode=options["ceil_mode"], return_indices=True)
        _, at = F.max_pool2d(seen.to(x.dtype), **window)
        y = x.flatten(2).gather(2, at.flatten(2)).view(at.shape)
        if not self.single:
            with torch.no_grad():
                best, own = F.max_pool2d(x, **window)
                # Equal values (zeros behind a ReLU) are one decision, whichever place was taken.
                self.turns.add(name, x.detach(), (at != own) & (best > y), best - y)
        return y


def prepared_model(name):
    model = torchvision_net.make_model(name)
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d, torchvision.ops.StochasticDepth)):
            module.p = 0.0
        for key in ("dropout", "drop_rate"):  # for F.dropout
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
        if isinstance(module, nn.BatchNorm2d):  # statistics that differ from their start, so that evaluation tests them
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for at, parameter in model.named_parameters():
        if parameter.dim() > 1 and not parameter.any():  # the head and the class token of vision transformers
            nn.init.normal_(parameter, std=0.1)
        if at.endswith("layer_scale"):  # 1e-6, which would hide the blocks behind it
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def torch_results(model, forward, x, dy, dtype, device):
    """Output and gradients, by name; the model's state stays as it is."""
    state = copy.deepcopy(model.state_dict())
    model.to(device, dtype)
    x = x.to(device, dtype, copy=True).requires_grad_(True)
    model.zero_grad(set_to_none=True)
    y = forward(x)
    y.backward(dy.to(device, dtype))
    results = {name: p.grad.double().cpu().numpy() for name, p in model.named_parameters()}
    results["data"], results["output"] = x.grad.double().cpu().numpy(), y.detach().double().cpu().numpy()
    model.zero_grad(set_to_none=True)
    model.to("cpu", torch.float32)
    model.load_state_dict(state)
    return results


def scales(reference):
    """Each tensor's largest magnitude. A gradient that is zero but for float64's rounding (of an offset that a batch
    norm takes away again) is measured by the network's largest gradient."""
    result = {name: float(np.abs(value).max()) for name, value in reference.items()}
    largest = max((scale for name, scale in result.items() if name != "output"), default=0.0)
    return {name: scale if scale > 1e-12 * largest else largest or 1.0 for name, scale in result.items()}


def errors(values, reference, scale):
    return {name: float(np.abs(value - reference[name]).max() / scale[name]) for name, value in values.items()}


class Comparison:
    """Errors of one run against one reference; `single` computes PyTorch's float32 results, when they are needed: where
    the run's error asks for another bound, or for details()."""

    def __init__(self, ours, reference, single, detailed=False):
        scale = scales(reference)
        self.errors = errors(ours, reference, scale)
        self.bounds = dict.fromkeys(reference, 1e-4)
        self.single = {}
        if detailed or any(not error <= 1e-4 for error in self.errors.values()):
            self.single = errors(single(), reference, scale)
            for name, error in self.single.items():
                self.bounds[name] = max(1e-4, 2 * error)
        self.bad = [name for name in ours if not self.errors[name] <= self.bounds[name]]

    def share(self, name):
        """Of its bound."""
        return self.errors[name] / self.bounds[name] if np.isfinite(self.errors[name]) else 1e30

    def details(self):
        lines = [f"    {self.errors[name]:.2e}, PyTorch's float32 {self.single[name]:.2e}, bound {self.bounds[name]:.2e}: '{name}'"
                 for name in sorted(self.errors, key=self.share, reverse=True)[:5]]
        # Of tensors without an error here or there (an offset's gradient may be exact) there is no ratio to take.
        ratios = [self.errors[name] / self.single[name] for name in self.errors if self.errors[name] > 0 and self.single[name] > 0]
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
        return "\n".join(lines + [f"    {mean:.2f} times PyTorch's float32 errors, the geometric mean of {len(ratios)} of "
                                  f"{len(self.errors)} tensors"])

    def __str__(self):
        worst = max(self.errors, key=self.share)
        text = f"output {self.errors['output']:.1e}, worst {self.errors[worst]:.1e} of {self.bounds[worst]:.1e} ('{worst}')"
        return text + (f", {len(self.bad)} of {len(self.errors)} out of bounds" if self.bad else "")


def read(path):
    with h5py.File(path) as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        return {name: np.array(file[name]) for name in names}


class Network:
    """One network's files, in a folder, and its comparisons."""

    def __init__(self, name, folder, arguments):
        self.name, self.folder, self.arguments = name, pathlib.Path(folder), arguments
        self.model = prepared_model(name)
        batch, size = arguments.batch, torchvision_net.image_size(name)
        net, self.exporter = torchvision_net.export(name, batch, False, False, self.model)
        self.output = net["outputs"][0]
        self.recorded = sorted({tensor for _, tensor, _ in self.exporter.decisions.values()} - {self.output, "data"})
        torchvision_net.write_json(self.folder / "plain.json", net)
        torchvision_net.write_json(self.folder / "net.json", dict(net, outputs=[self.output] + self.recorded))
        torchvision_net.write_weights(self.folder / "weights.h5", self.exporter, self.model.state_dict())
        generator = torch.Generator().manual_seed(arguments.seed)
        self.x = torch.randn(batch, 3, size, size, generator=generator)
        self.dy = torch.randn(batch, 1000, generator=generator) / 100
        with h5py.File(self.folder / "in.h5", "w") as file:
            file["data"] = self.x.numpy()
        with h5py.File(self.folder / "dy.h5", "w") as file:
            file[self.output] = self.dy.numpy()

    def run(self, net, *more):
        command = [self.arguments.run, net, "-d", self.arguments.device, "--weights", "weights.h5", "--inputs", "in.h5",
                   "--outputs", "out.h5", *more]
        for engine in self.arguments.engine:
            command += ["--engine", engine]
        subprocess.run(command, check=True, cwd=self.folder)
        return read(self.folder / "out.h5")

    def inference(self):
        self.model.eval()
        y = self.run("plain.json")[self.output]
        x = self.x.to(self.arguments.torch_device)
        with torch.no_grad():
            self.model.to(x.device)
            single = self.model(x).double().cpu().numpy()
            reference = self.model.double()(x.double()).cpu().numpy()
            self.model.to("cpu", torch.float32)
        result = Comparison({"output": y}, {"output": reference}, lambda: {"output": single}, self.arguments.verbose)
        print(f"{self.name:20s} inference   {result}: {'FAILED' if result.bad else 'ok'}", flush=True)
        if self.arguments.verbose:
            print(result.details(), flush=True)
        return not result.bad

    def gradients(self, training):
        self.model.train(training)
        self.exporter.traced.train(training)
        recorded = self.run("net.json", "--output-grads", "dy.h5", "--grads", "g.h5", *(["--train"] if training else []))
        recorded["data"] = self.x.numpy()
        gradients = read(self.folder / "g.h5")
        trained = dict(self.model.named_parameters())
        ours = {source: gradients[name].reshape(trained[source].shape) for name, source in self.exporter.weights.items()
                if source in trained}
        ours.update(data=gradients["data"], output=recorded[self.output])

        def reference(dtype, turns=None):
            forward = self.model
            if turns is not None:
                forward = Matched(self.exporter, recorded, turns, dtype == torch.float32).run
            return torch_results(self.model, forward, self.x, self.dy, dtype, self.arguments.torch_device)

        plain = Comparison(ours, reference(torch.float64), lambda: reference(torch.float32))
        turns = Turns()
        exact = reference(torch.float64, turns)
        single = reference(torch.float32, turns)
        matched = Comparison(ours, exact, lambda: single, self.arguments.verbose)
        margin, marginal = "", True
        if turns.turned:
            name, far, bound = turns.farthest(self.arguments.margin)
            margin, marginal = f", by {far:.1e} of {bound:.1e} ('{name}')", far <= bound
        ok = not plain.bad or (not matched.bad and marginal)
        print(f"{self.name:20s} {'training  ' if training else 'evaluation'}  plain {plain}; matched {matched}; {turns.turned} of "
              f"{turns.taken} decisions turned{margin}: {'ok' if ok else 'FAILED'}{'' if not plain.bad or not ok else ', matched'}",
              flush=True)
        if self.arguments.verbose:
            print(matched.details(), flush=True)
        for name in [] if ok else matched.bad[:5]:
            print(f"    {name}: {matched.errors[name]:.2e}, bound {matched.bounds[name]:.2e}")
        return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=torchvision_net.NETWORKS, help="default: one or two of each family")
    parser.add_argument("--run", default="build/tools/dlprim_run")
    parser.add_argument("-d", "--device", default="opencl")
    parser.add_argument("--torch-device", default="cpu", help="where PyTorch computes: cpu or cuda")
    parser.add_argument("--margin", type=float, default=1e-4, help="what is marginal, in shares of the largest magnitude")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2, help="of inputs and output gradients (2)")
    parser.add_argument("--mode", choices=["inference", "evaluation", "training"], action="append", help="default: all three")
    parser.add_argument("--engine", action="append", default=[], help="NODE=ENGINE or TYPE=ENGINE, as dlprim_run takes it")
    parser.add_argument("-v", "--verbose", action="store_true", help="the worst tensors and the mean beside PyTorch's float32")
    arguments = parser.parse_args()
    arguments.run = str(pathlib.Path(arguments.run).resolve())
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    modes = arguments.mode or ["inference", "evaluation", "training"]
    agree = 0
    for name in arguments.names:
        try:
            with tempfile.TemporaryDirectory() as folder:
                network = Network(name, folder, arguments)
                results = [network.inference() if mode == "inference" else network.gradients(mode == "training") for mode in modes]
            agree += all(results)
        except (NotImplementedError, subprocess.CalledProcessError, KeyError) as error:
            print(f"{name:20s} FAILED: {error}", flush=True)
    print(f"{agree} of {len(arguments.names)} networks agree")
    return 0 if agree == len(arguments.names) else 1


if __name__ == "__main__":
    sys.exit(main())
