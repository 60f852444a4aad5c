# SPDX-License-Identifier: MIT
"""examples/python: each script runs on every device with small settings, and does what it says."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import example_programs as programs
import numpy as np
import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def shares(text: str, what: str) -> list[float]:
    """The percentages in front of or behind a text, as they were printed."""
    return [float(a or b) / 100 for a, b in re.findall(rf"([\d.]+)% {what}|{what} ([\d.]+)%", text)]


# Fashion-MNIST.


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return programs.write_pictures(tmp_path_factory.mktemp("pictures"), train=1000, test=230)


def test_fashion_mnist_trains_and_draws(device: str, pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed (scripts/install_deps.sh python)")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (scripts/install_deps.sh python)")
    printed = programs.run(
        "train_fashion_mnist", "-d", device, "--data", pictures, "--epochs", 2, "--batch", 50, "--plot", "curves.png",
        "--save", "model.h5", folder=tmp_path,
    )  # fmt: skip
    accuracies = shares(printed, "on the test pictures")
    assert len(accuracies) == 2, printed
    assert accuracies[-1] > 0.5, f"chance is 0.1:\n{printed}"
    assert "conv2d_1" in printed, "the network's table is missing"
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)
    assert (tmp_path / "model.h5").stat().st_size > 4 * 98_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "nowhere"], "there is no folder 'nowhere': install dataset-fashion-mnist"),
        (["--data", "."], "train-images-idx3-ubyte.gz"),
        (["--limit", 20], "20 samples are fewer than a batch of 100"),
        (["--rate", -1], "learning rate -1 is invalid"),
        (["-d", "no such device"], "there is no device 'no such device'"),
        (["--epochs", 0], "0 is less than 1"),
    ],
)
def test_fashion_mnist_says_what_is_wrong(
    host: Any, pictures: pathlib.Path, tmp_path: pathlib.Path, arguments: list[Any], sentence: str
) -> None:
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    given = ["-d", "cpu", "--data", pictures, *arguments]
    assert sentence in programs.run("train_fashion_mnist", *given, folder=tmp_path, fails=True)


# The classifier.


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A picture of circles and colours, wider than high."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (scripts/install_deps.sh python)")
    y, x = np.mgrid[0:150, 0:200]
    pixels = np.stack([x, y, 127 + 120 * np.sin((x - 80) ** 2 / 900 + (y - 70) ** 2 / 700)], axis=-1)
    path = tmp_path_factory.mktemp("picture") / "circles.png"
    image.fromarray(pixels.astype(np.uint8)).save(path)
    return pathlib.Path(path)


def answers(printed: str) -> list[tuple[float, str]]:
    return [(float(share) / 100, name) for share, name in re.findall(r"^ *([\d.]+)%  (.*)$", printed, re.MULTILINE)]


def test_classifier_without_weights_says_so(host: Any, picture: pathlib.Path, tmp_path: pathlib.Path) -> None:
    printed = programs.run("classify_picture", picture, "-d", "cpu", "--size", 64, folder=tmp_path)
    assert "they are random" in printed
    found = answers(printed)
    assert len(found) == 5 and found == sorted(found, key=lambda answer: -answer[0])


def check_against_pytorch(
    device: str, torch: Any, torchvision: Any, picture: pathlib.Path, folder: pathlib.Path, model: str, suffix: str
) -> None:
    """The five likeliest classes and their shares are those of the same model in PyTorch."""
    example = programs.load("classify_picture")
    torch.manual_seed(3)
    network = torchvision.models.get_model(model, weights=None).eval()
    with torch.no_grad():
        network.get_parameter("fc.weight" if "resnet" in model else "classifier.1.weight").mul_(
            30
        )  # telling classes apart
        expected = network(torch.from_numpy(example.load_picture(picture, 64))).softmax(dim=1)[0]
    weights = folder / f"{model}{suffix}"
    if suffix == ".pth":
        torch.save(network.state_dict(), weights)
    else:
        pytest.importorskip("safetensors.torch").save_file(network.state_dict(), weights)
    (folder / "classes.txt").write_text("\n".join(f"the {i}th kind" for i in range(1000)))

    printed = programs.run(
        "classify_picture", picture, "-d", device, "--size", 64, "--model", model, "--weights", weights, "--classes",
        "classes.txt", folder=folder,
    )  # fmt: skip
    found = answers(printed)
    best = expected.topk(5)
    assert [name for _, name in found] == [f"the {int(i)}th kind" for i in best.indices], printed
    np.testing.assert_allclose([share for share, _ in found], best.values, atol=0.0006)


def test_classifier_answers_as_pytorch(
    device: str, torch: Any, torchvision: Any, picture: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    check_against_pytorch(device, torch, torchvision, picture, tmp_path, "resnet18", ".pth")


@pytest.mark.parametrize(("model", "suffix"), [("resnet50", ".safetensors"), ("squeezenet1_0", ".pth")])
def test_classifier_takes_other_models_and_files(
    host: Any, torch: Any, torchvision: Any, picture: pathlib.Path, tmp_path: pathlib.Path, model: str, suffix: str
) -> None:
    check_against_pytorch("cpu", torch, torchvision, picture, tmp_path, model, suffix)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.jpg"], "No such file"),
        ([__file__], "cannot identify image file"),
        (["PICTURE", "--weights", "nowhere.safetensors"], "nowhere.safetensors"),
        (["PICTURE", "--weights", "damaged.safetensors"], "is no safetensors file"),
        (["PICTURE", "--weights", "damaged.pth"], "'damaged.pth' is no file of tensors that PyTorch saved"),
        (["PICTURE", "--weights", "other.safetensors"], "which the state_dict lacks"),
        (["PICTURE", "--weights", "damaged.h5"], "is not an HDF5 file"),
    ],
)
def test_classifier_says_what_is_wrong(
    host: Any, picture: pathlib.Path, tmp_path: pathlib.Path, arguments: list[str], sentence: str
) -> None:
    if arguments[-1].endswith(".pth"):
        pytest.importorskip("torch")
    if arguments[-1].endswith(".safetensors"):
        numpy_files = pytest.importorskip("safetensors.numpy")
        numpy_files.save_file({"conv1.weight": np.zeros((64, 3, 7, 7), np.float32)}, tmp_path / "other.safetensors")
    for name in ("damaged.pth", "damaged.safetensors", "damaged.h5"):
        (tmp_path / name).write_bytes(b"no tensors at all, and more than eight bytes")
    given = [picture if argument == "PICTURE" else argument for argument in arguments]
    printed = programs.run("classify_picture", *given, "-d", "cpu", "--size", 64, folder=tmp_path, fails=True)
    assert sentence in printed


# The kernel.


def test_kernel_agrees_with_numpy_and_is_timed(device: str, tmp_path: pathlib.Path) -> None:
    printed = programs.run("pointwise_kernel", "-d", device, "--size", 100_000, "--repeats", 3, folder=tmp_path)
    errors = [float(error) for error in re.findall(r"within (\S+?)(?: of|$)", printed, re.MULTILINE)]
    assert len(errors) == 2 and all(0 <= error < 1e-5 for error in errors), printed
    rates = [float(rate) for rate in re.findall(r"([\d.]+) GB/s", printed)]
    assert len(rates) == 2 and min(rates) > 0, printed


def test_kernel_notices_a_wrong_expression(
    host: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = programs.load("pointwise_kernel")
    monkeypatch.setattr(example, "CODE", example.CODE.replace("(1 +", "(1.001 +"))
    monkeypatch.setattr("sys.argv", ["pointwise_kernel.py", "-d", "cpu", "--size", "1000"])
    with pytest.raises(SystemExit, match="more than rounding explains"):
        example.main()
    assert "GB/s" not in capsys.readouterr().out


# The loop.


def test_loop_learns_and_resumes_bit_for_bit(device: str, tmp_path: pathlib.Path) -> None:
    settings = ["-d", device, "--epochs", 4, "--points", 1000]
    whole = programs.run("custom_loop", *settings, "--out", "whole", folder=tmp_path)
    learnt = shares(whole, "of the test points right")
    assert len(learnt) == 4 and learnt[-1] > 0.6, f"chance is 0.33:\n{whole}"

    resume = ["--out", "rest", "--resume", "whole/epoch_2.h5"]
    rest = programs.run("custom_loop", *settings, *resume, folder=tmp_path)
    assert "going on after epoch 2" in rest
    assert rest.splitlines()[-2:] == whole.splitlines()[-2:], "the losses differ"
    files = [tmp_path / part / "model.h5" for part in ("whole", "rest")]
    assert files[0].read_bytes() == files[1].read_bytes(), "the weights differ"

    other = programs.run("custom_loop", *settings, "--rate", 0.005, "--out", "other", folder=tmp_path)
    assert other.splitlines()[-1] != whole.splitlines()[-1]
    assert files[0].read_bytes() != (tmp_path / "other/model.h5").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--resume", "nowhere.h5"], "there is no file 'nowhere.h5'"),
        (["--resume", "damaged.h5"], "is not an HDF5 file"),
        (["--clip", -1], "must not be negative"),
        (["--points", 3], "does not fill a batch of 50"),
    ],
)
def test_loop_says_what_is_wrong(host: Any, tmp_path: pathlib.Path, arguments: list[Any], sentence: str) -> None:
    (tmp_path / "damaged.h5").write_bytes(b"no tensors at all, and more than eight bytes")
    assert sentence in programs.run("custom_loop", "-d", "cpu", *arguments, folder=tmp_path, fails=True)
