#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes small networks of torchvision's kinds, and what PyTorch computes in float64 for them.

    python3 tests/golden/make_networks.py [NAME ...]     e.g. tiny_swin

tests/nets/NAME.json is what scripts/torchvision_net.py makes of the model. tests/golden/NAME.h5 has the groups `weights`, by
the network's names, `inputs`, and for evaluation and training, each a group, `output`, `output_gradient` and `gradients`, by
the network's names. tests/commands/networks_test.py compares dlprim_run with them. Needs torch, torchvision, h5py.
"""
from __future__ import annotations

import copy
import functools
import pathlib
import sys
from collections.abc import Callable

import h5py
import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import torchvision_net  # noqa: E402
from torchvision_net import torchvision  # noqa: E402

BATCH = 2


def vit() -> nn.Module:
    return torchvision.models.VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32,
                                                num_classes=5)


def swin() -> nn.Module:
    """8 x 8 positions in windows of 4 x 4, shifted in the second block; then windows as large as what is left."""
    return torchvision.models.SwinTransformer(patch_size=[2, 2], embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=[4, 4],
                                              stochastic_depth_prob=0.0, num_classes=5)


def swin_v2() -> nn.Module:
    """7 x 7 positions, which are padded to 8 x 8 for windows and for merging."""
    transformer = torchvision.models.swin_transformer
    return torchvision.models.SwinTransformer(patch_size=[2, 2], embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=[4, 4],
                                              stochastic_depth_prob=0.0, num_classes=5, block=transformer.SwinTransformerBlockV2,
                                              downsample_layer=transformer.PatchMergingV2)


def maxvit() -> nn.Module:
    return torchvision.models.MaxVit(input_size=(32, 32), stem_channels=8, partition_size=2, block_channels=[8], block_layers=[1],
                                     head_dim=4, stochastic_depth_prob=0.0, num_classes=5)


def convnext() -> nn.Module:
    setting = torchvision.models.convnext.CNBlockConfig
    return torchvision.models.ConvNeXt([setting(8, 16, 1), setting(16, None, 1)], layer_scale=0.5, num_classes=5)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "tiny_vit": (vit, 16), "tiny_swin": (swin, 16), "tiny_swin_v2": (swin_v2, 14), "tiny_maxvit": (maxvit, 32),
    "tiny_convnext": (convnext, 16)}


def rounded(shape: tuple[int, ...], scale: float) -> torch.Tensor:
    """Values that compress well and that float32 holds exactly."""
    return (torch.randn(shape) * scale * 64).round() / 64


def spread(model: nn.Module) -> None:
    """Parameters and statistics far from where they start, so that each of them matters."""
    for name, parameter in model.named_parameters():
        if name.endswith("logit_scale"):
            continue
        middle = 1.0 if name.endswith("weight") and parameter.dim() == 1 else 0.0
        parameter.data = middle + rounded(tuple(parameter.shape), 0.25)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(rounded(tuple(module.running_mean.shape), 0.25))
            module.running_var.uniform_(0.5, 1.5)


def results(model: nn.Module, x: torch.Tensor, dy: torch.Tensor, training: bool) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The output, and gradients by the state_dict's names; `data` is the input's."""
    model = copy.deepcopy(model).double().train(training)
    x = x.double().requires_grad_(True)
    y = model(x)
    y.backward(dy.double())
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    return y.detach().numpy(), gradients | {"data": x.grad.numpy()}


def write(name: str) -> None:
    build, size = NETWORKS[name]
    torch.manual_seed(7)
    model = build()
    spread(model)
    net, exporter = torchvision_net.export(name, BATCH, True, False, model, size)
    torchvision_net.write_json(HERE.parent / "nets" / f"{name}.json", net)
    x, dy = rounded((BATCH, 3, size, size), 1.0), rounded((BATCH, 5), 1.0)
    state = model.state_dict()
    with h5py.File(HERE / f"{name}.h5", "w") as file:
        store = functools.partial(file.create_dataset, dtype="f4", track_times=False)
        store("inputs/data", data=x.numpy())
        for at, source in exporter.weights.items():
            value = state[source]
            store(f"weights/{at}", data=value.reshape(exporter.shapes.get(at, value.shape)).numpy())
        for mode in ("evaluation", "training"):
            y, gradients = results(model, x, dy, mode == "training")
            store(f"{mode}/output", data=y)
            store(f"{mode}/output_gradient", data=dy.numpy())
            store(f"{mode}/gradients/data", data=gradients["data"])
            for at, source in exporter.weights.items():
                if source in gradients:
                    value = gradients[source]
                    store(f"{mode}/gradients/{at}", data=value.reshape(exporter.shapes.get(at, value.shape)))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NETWORKS:
        write(chosen)
