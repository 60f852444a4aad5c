# SPDX-License-Identifier: MIT
"""torchvision's classification networks: which there are, models with fresh or given weights, and sizes of images.

Other scripts import torchvision from here, since the import may need help.
"""
import pathlib
import socket
import sys

import torch

try:
    import torchvision
except RuntimeError:
    # Built for another PyTorch, torchvision lacks its compiled operators. Classification needs none of them, but the
    # import declares shapes for two: those are declared here, and the import is tried again.
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    _library = torch.library.Library("torchvision", "DEF")
    _library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

NETWORKS = [
    "alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "vgg11_bn", "squeezenet1_0", "googlenet",
    "inception_v3", "densenet121", "densenet161", "resnext50_32x4d", "wide_resnet50_2", "mnasnet1_0",
    "shufflenet_v2_x1_0", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf",
    "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t",
]


def all_networks():
    """Every classification network that torchvision has."""
    return torchvision.models.list_models(module=torchvision.models)


def make_model(name, weights=None, device="cpu"):
    """The model with fresh weights, or those of `weights`: a state_dict's file, or torchvision's name of them, which it
    downloads. On the device "meta" it has shapes alone."""
    torch.manual_seed(1)
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=weights is None)
    try:
        with torch.device(device):
            model = torchvision.models.get_model(name, **options)
    except NotImplementedError:  # regnet_* compute their widths with tensors
        model = torchvision.models.get_model(name, **options)
    if weights is not None:
        load_weights(model, name, weights)
    return model


def load_weights(model, name, weights):
    """Throws ValueError, with a sentence, where the weights are not to be had or are those of another network."""
    if pathlib.Path(weights).suffix in (".pth", ".pt") or pathlib.Path(weights).exists():
        try:
            state = torch.load(weights, map_location="cpu", weights_only=True)
        except Exception as error:  # noqa: BLE001 - whatever the file holds
            raise ValueError(f"'{weights}' cannot be read as a state_dict of PyTorch: {first_line(error)}") from error
        state = state.get("state_dict", state) if isinstance(state, dict) else state
    else:
        known = torchvision.models.get_model_weights(name)
        if weights not in known.__members__:
            raise ValueError(f"'{weights}' is no file and no weights of {name}; torchvision has {', '.join(known.__members__)} "
                             "and DEFAULT")
        socket.setdefaulttimeout(20)  # torch.hub sets none and would wait for ever
        try:
            state = known[weights].get_state_dict(progress=False)
        except Exception as error:  # noqa: BLE001 - whatever a download ends with
            raise ValueError(f"{known[weights].url} cannot be downloaded ({first_line(error)}): fetch the file elsewhere and "
                             "give it with --pretrained FILE.pth") from error
    wanted = model.state_dict()
    state = {key: value for key, value in state.items() if not key.startswith(("aux1.", "aux2.", "AuxLogits."))}
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except Exception as error:  # noqa: BLE001 - shapes that differ, or no dictionary
        raise ValueError(f"'{weights}' holds no weights of {name}: {first_line(error)}") from error
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]
    if missing or unexpected:
        raise ValueError(f"'{weights}' holds no weights of {name}: {len(missing)} of {len(wanted)} tensors are missing, "
                         f"{len(unexpected)} are of something else, such as '{(missing + unexpected)[0]}'")


def first_line(error):
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def image_size(name):
    """The size of images that a network is compared and timed with."""
    if name == "inception_v3":
        return 299
    return 256 if name.startswith("swin_v2") else 224  # windows of 8 do not divide what 224 leads to
