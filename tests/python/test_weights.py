# SPDX-License-Identifier: MIT
"""Weights from and to PyTorch's state_dicts, dicts of arrays and safetensors files."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import struct
from collections.abc import Sequence
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import nn, weights
from small_networks import assert_same_weights


def small_net(context: dlprim.Context, dtype: str = "float32") -> dlprim.Net:
    """A convolution, a BatchNorm and a product: parameters of both kinds of order."""
    x = nn.Input("data", (2, 3, 6, 6), dtype)
    y = nn.BatchNorm(name="bn")(nn.Conv2d(4, 3, name="conv")(x))
    y = nn.Linear(5, name="fc")(nn.flatten(nn.global_avg_pool2d(y)))
    net = nn.Model(x, {"y": y}).build(context, mode="inference")
    net.initialize()
    return net


def small_module(torch: Any) -> Any:
    torch.manual_seed(1)
    t = torch.nn
    module = t.Sequential(
        t.Conv2d(3, 4, 3), t.BatchNorm2d(4), t.AdaptiveAvgPool2d(1), t.Flatten(), t.Linear(4, 5)
    ).eval()
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if "running" in name or name.startswith("1."):
                tensor.uniform_(0.2, 2) if tensor.is_floating_point() else None
    return module


NAMES = ["conv.0", "conv.1", "bn.0", "bn.1", "bn.2", "bn.3", "fc.0", "fc.1"]
SOURCES = ["0.weight", "0.bias", "1.running_mean", "1.running_var", "1.weight", "1.bias", "4.weight", "4.bias"]


def check_outputs(net: dlprim.Net, module: Any, torch: Any) -> None:
    values = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        expected = module(values).numpy()
    np.testing.assert_allclose(net.run(data=values.numpy())["y"], expected, rtol=1e-4, atol=1e-5)


def test_a_state_dict_is_matched_by_order_and_shape(context: dlprim.Context, torch: Any) -> None:
    net, module = small_net(context), small_module(torch)
    matches = weights.load(net, module.state_dict())
    assert [m.param for m in matches] == NAMES and [m.source for m in matches] == SOURCES
    assert matches.ignored == ["1.num_batches_tracked"] and matches.problems == []
    assert "bn.0    <-  1.running_mean  [4]" in str(matches).splitlines()
    assert "networks have no use for them: 1.num_batches_tracked" in str(matches)
    check_outputs(net, module, torch)


def test_a_module_is_taken_as_its_state_dict(host: dlprim.Context, torch: Any) -> None:
    net, module = small_net(host), small_module(torch)
    assert len(weights.load(net, module)) == 8
    check_outputs(net, module, torch)


def test_a_map_says_which_is_which(host: dlprim.Context, torch: Any) -> None:
    net, module = small_net(host), small_module(torch)
    shuffled = dict(reversed(module.state_dict().items()))
    weights.load(net, shuffled, dict(zip(NAMES, SOURCES)))
    check_outputs(net, module, torch)
    lookup = dict(zip(NAMES, SOURCES))
    weights.load(net, shuffled, lambda name: lookup[name])
    check_outputs(net, module, torch)


def test_equal_names_need_no_map(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("data", (2, 3))
    names = ["a.weight", "a.bias"], ["b.weight", "b.bias"]
    y = nn.Linear(3, params=names[1])(nn.Linear(3, params=names[0])(x))
    net = nn.Model(x, {"y": y}).build(host, mode="inference")
    module = torch.nn.ModuleDict({"b": torch.nn.Linear(3, 3), "a": torch.nn.Linear(3, 3)})  # in another order
    matches = weights.load(net, module)
    assert all(m.param == m.source for m in matches)
    np.testing.assert_array_equal(net.param("a.weight").numpy(), module["a"].weight.detach().numpy())


def test_names_of_modules_go_before_order(host: dlprim.Context, torch: Any) -> None:
    """As scripts/torchvision_net.py names operators; a tensor of the module itself is a Parameter's."""
    x = nn.Input("data", (2, 3))
    y = nn.Linear(3, name="block.second")(nn.Linear(3, name="block.first")(x))
    net = nn.Model(x, {"y": y + nn.parameter((1, 3), name="block.token")}).build(host, mode="inference")
    shapes = {"block.token": (1, 1, 3), "block.second.weight": (3, 3), "block.second.bias": (3,)}
    shapes.update({"block.first.weight": (3, 3), "block.first.bias": (3,)})
    state = {name: torch.zeros(shape) for name, shape in shapes.items()}
    state["block.table"] = torch.zeros(3, 3, dtype=torch.int64)  # what modules compute for themselves
    matches = weights.load(net, state)
    assert {m.param: m.source for m in matches} == {
        "block.first.0": "block.first.weight",
        "block.first.1": "block.first.bias",
        "block.second.0": "block.second.weight",
        "block.second.1": "block.second.bias",
        "block.token.0": "block.token",
    }
    assert [m.param for m in matches] == net.param_names and matches.ignored == ["block.table"]


def shapes_of(net: dlprim.Net) -> dict[str, tuple[int, ...]]:
    return {name: net.param_shape(name) for name in net.param_names}


def test_what_does_not_match_is_told_with_both_shapes(host: dlprim.Context, torch: Any) -> None:
    net, module = small_net(host), small_module(torch)
    before = net.param("conv.0").numpy()
    state = module.state_dict()
    state["4.weight"], state["4.bias"] = torch.zeros(7, 4), torch.zeros(7)  # another number of classes
    with pytest.raises(dlprim.InvalidArgumentError) as caught:
        weights.load(net, state)
    assert "the parameter 'fc.0' is [5, 4], the tensor '4.weight' that it would take is [7, 4]" in str(caught.value)
    np.testing.assert_array_equal(net.param("conv.0").numpy(), before)  # nothing was changed
    matches = weights.load(net, state, strict=False)
    assert [m.param for m in matches] == NAMES[:6] and len(matches.problems) == 2
    np.testing.assert_array_equal(net.param("conv.0").numpy(), state["0.weight"].numpy())


def test_tensors_in_between_are_told(host: dlprim.Context, torch: Any) -> None:
    net = small_net(host)
    state = dict(small_module(torch).state_dict())
    items = list(state.items())
    found = weights.match(shapes_of(net), dict([*items[:2], ("extra.table", torch.zeros(9, 9)), *items[2:]]))
    assert len(found) == 8 and found.problems == ["the tensor 'extra.table' [9, 9] finds no parameter"]
    del state["4.bias"]
    assert weights.match(shapes_of(net), state).problems == ["the parameter 'fc.1' [5] finds no tensor"]


def test_a_map_that_does_not_fit_is_told(host: dlprim.Context, torch: Any) -> None:
    shapes, state = shapes_of(small_net(host)), small_module(torch).state_dict()
    good = dict(zip(NAMES, SOURCES))

    def problems(names: dict[str, str]) -> Sequence[str]:
        return weights.match(shapes, state, names).problems

    assert problems(good) == []
    assert "names gives nothing for the parameter 'fc.1' [5]" in problems(
        {k: v for k, v in good.items() if k != "fc.1"}
    )
    assert problems({**good, "fc.1": "4.bia"})[0] == (
        "the parameter 'fc.1' is to take '4.bia', which the state_dict lacks; did you mean '4.bias'?"
    )
    assert problems({**good, "fc.2": "4.bias"}) == [
        "names has 'fc.2', which is no parameter of the network; did you mean 'fc.0'?"
    ]
    assert "which it would" not in problems({**good, "fc.1": "0.bias"})[0]
    assert "'fc.1' is [5], the tensor '0.bias' that it would take is [4]" in problems({**good, "fc.1": "0.bias"})[0]
    turned = problems({v: k for k, v in good.items()})[0]
    assert "its keys are the network's names, its values the state_dict's" in turned


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_float_types_convert(host: dlprim.Context, torch: Any, dtype: str) -> None:
    net, module = small_net(host), small_module(torch)
    state = {name: value.to(getattr(torch, dtype)) for name, value in module.state_dict().items()}
    weights.load(net, state)
    for name, source in zip(NAMES, SOURCES):
        np.testing.assert_array_equal(net.param(name).numpy(), state[source].float().numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_of_16_bits(host: dlprim.Context, torch: Any, dtype: str) -> None:
    net, module = small_net(host, dtype), small_module(torch)
    weights.load(net, module)
    for name, source in zip(NAMES, SOURCES):
        assert net.param(name).dtype == dtype
        expected = module.state_dict()[source].to(getattr(torch, dtype)).float().numpy()
        np.testing.assert_array_equal(net.weights()[name].astype(np.float32), expected)
    back = weights.to_state_dict(net, like=module)
    assert back["0.weight"].dtype == getattr(torch, dtype)


def test_numbers_that_a_type_does_not_hold(host: dlprim.Context) -> None:
    x = nn.Input("data", (2, 3))
    net = nn.Model(x, nn.Linear(2, bias=False, params=["w"])(x)).build(host)
    y = nn.Input("data", (2, 3), "half")
    half = nn.Model(y, nn.Linear(2, bias=False, params=["w"])(y)).build(host)
    with pytest.raises(
        dlprim.InvalidArgumentError, match="holds 70000, which float16, .* does not hold .at most 65504"
    ):
        weights.load(half, {"w": np.full((2, 3), 70000, np.float32)})
    with pytest.raises(
        dlprim.InvalidArgumentError, match="'w' holds 1e\\+300, which float32, the type of the parameter 'w'"
    ):
        weights.load(net, {"w": np.full((2, 3), 1e300)})
    weights.load(net, {"w": np.full((2, 3), np.inf)})  # which it does hold
    with pytest.raises(dlprim.InvalidArgumentError, match="the tensor 'w' is of int64, the parameter 'w' of float32"):
        weights.load(net, {"w": np.ones((2, 3), np.int64)})
    with pytest.raises(dlprim.UnsupportedError, match="'w' is an array of complex64"):
        weights.load(net, {"w": np.ones((2, 3), np.complex64)})
    with pytest.raises(TypeError, match="'w' is an array of Python objects"):
        weights.load(net, {"w": np.full((2, 3), None)})


def test_strided_and_byteswapped_arrays_are_copied(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("data", (2, 3))
    net = nn.Model(x, nn.Linear(2, bias=False, params=["w"])(x)).build(host)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    forms = [values[::-1, ::-1][::-1, ::-1], values.T.copy().T, values.astype(">f4"), np.repeat(values, 2, 1)[:, ::2]]
    forms += [torch.from_numpy(values.T.copy()).t(), torch.from_numpy(values).clone().requires_grad_()]
    for form in forms:
        net.param("w").copy_from(np.zeros((2, 3), np.float32))
        weights.load(net, {"w": form})
        np.testing.assert_array_equal(net.param("w").numpy(), values)


def test_shapes_may_differ_in_sizes_of_one(host: dlprim.Context) -> None:
    x = nn.Input("data", (2, 3))
    net = nn.Model(x, x * nn.parameter((1, 3), params=["scale"])).build(host)
    weights.load(net, {"gamma": np.array([1, 2, 3], np.float32)})
    assert net.param("scale").numpy().tolist() == [[1, 2, 3]]


def test_what_is_no_state_dict(host: dlprim.Context, torch: Any) -> None:
    net, state = small_net(host), small_module(torch).state_dict()
    with pytest.raises(TypeError, match=r"perhaps state\['model'\] is the state_dict"):
        weights.load(net, {"epoch": np.zeros(()), "model": state})
    with pytest.raises(TypeError, match="holds 'epoch', a int; tensors or arrays by name"):
        weights.load(net, {"epoch": 3})
    with pytest.raises(TypeError, match="not a list"):
        weights.load(net, [state])


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_sparse_and_quantized_tensors(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("data", (2, 3))
    net = nn.Model(x, nn.Linear(2, bias=False, params=["w"])(x)).build(host)
    values = torch.tensor([[0.0, 1, 0], [2, 0, 3]])
    weights.load(net, {"w": values.to_sparse()})
    np.testing.assert_array_equal(net.param("w").numpy(), values.numpy())
    with pytest.raises(dlprim.InvalidArgumentError, match="'w' is quantized"):
        weights.load(net, {"w": torch.quantize_per_tensor(values, 0.1, 0, torch.qint8)})


def test_to_a_state_dict_and_back(context: dlprim.Context, torch: Any) -> None:
    net, module = small_net(context), small_module(torch)
    module.load_state_dict(weights.to_state_dict(net, like=module))
    assert module.state_dict()["1.num_batches_tracked"] == 0
    check_outputs(net, module, torch)
    own = weights.to_state_dict(net)
    assert list(own) == NAMES and own["fc.0"].dtype == torch.float32
    mapped = weights.to_state_dict(net, names=dict(zip(NAMES, SOURCES)))
    assert list(mapped) == SOURCES
    with pytest.raises(dlprim.InvalidArgumentError, match="finds no tensor"):
        weights.to_state_dict(net, like=module[:2])


def test_arrays_of_a_net(host: dlprim.Context) -> None:
    net, other = small_net(host), small_net(host)
    other.initialize("he")
    arrays = net.weights()
    assert list(arrays) == NAMES and arrays["conv.0"].shape == (4, 3, 3, 3)
    weights.load(other, arrays)
    values = np.ones((2, 3, 6, 6), np.float32)
    np.testing.assert_array_equal(other.run(data=values)["y"], net.run(data=values)["y"])


# Safetensors ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def safetensors() -> Any:
    return pytest.importorskip("safetensors")


def test_safetensors_files_of_a_net(context: dlprim.Context, safetensors: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.safetensors"
    net, other = small_net(context), small_net(context)
    other.initialize("xavier")
    weights.save_safetensors(net, path, metadata={"made by": "a test"})
    assert os.listdir(tmp_path) == ["net.safetensors"]
    assert len(weights.load_safetensors(other, path)) == 8
    values = np.ones((2, 3, 6, 6), np.float32)
    np.testing.assert_array_equal(other.run(data=values)["y"], net.run(data=values)["y"])
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"made by": "a test"} and set(file.keys()) == set(NAMES)


def test_safetensors_files_of_pytorch(
    host: dlprim.Context, torch: Any, safetensors: Any, tmp_path: pathlib.Path
) -> None:
    torch_files = pytest.importorskip("safetensors.torch")
    net, module = small_net(host), small_module(torch)
    names, path = dict(zip(NAMES, SOURCES)), tmp_path / "module.safetensors"
    torch_files.save_file(module.state_dict(), path)
    matches = weights.load_safetensors(net, path, names)
    assert matches.ignored == ["1.num_batches_tracked"]
    check_outputs(net, module, torch)
    with pytest.raises(dlprim.InvalidArgumentError, match="have no order to match by: give `names`"):
        weights.load_safetensors(net, path)
    back = tmp_path / "back.safetensors"
    weights.save_safetensors(net, back, names)
    state = torch_files.load_file(back)
    module.load_state_dict(state, strict=False)
    check_outputs(net, module, torch)


def test_safetensors_hold_every_type(torch: Any, safetensors: Any, tmp_path: pathlib.Path) -> None:
    torch_files = pytest.importorskip("safetensors.torch")
    path = tmp_path / "all.safetensors"
    arrays: dict[str, Any] = {
        dtype: np.array([[0, 1], [1, 0]]).astype(dtype)
        for dtype in (
            "float32",
            "float16",
            "float64",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "bool",
        )
    }
    arrays["scalar"], arrays["empty"] = np.float32(2), np.zeros((0, 3), np.float32)
    weights.write_safetensors(path, arrays)
    read = weights.read_safetensors(path)
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert read[name].dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(read[name], array)
    halves = torch.tensor([1.0, -2.5, 3.140625]).bfloat16()
    torch_files.save_file({"a": torch.ones(3), "b": halves}, path)
    assert weights.read_safetensors(path)["b"].tolist() == [1.0, -2.5, 3.140625]


def test_bfloat16_parameters_in_safetensors(
    host: dlprim.Context, torch: Any, safetensors: Any, tmp_path: pathlib.Path
) -> None:
    torch_files = pytest.importorskip("safetensors.torch")
    net, other = small_net(host, "bfloat16"), small_net(host, "bfloat16")
    other.initialize("he")
    path = tmp_path / "half.safetensors"
    weights.save_safetensors(net, path)
    assert torch_files.load_file(path)["fc.0"].dtype == torch.bfloat16
    weights.load_safetensors(other, path)
    assert_same_weights(other.weights(), net.weights())


def header(text: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(text)) + text + data


def entry(**changes: Any) -> bytes:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}
    return json.dumps({"a": tensor}).encode()


HOSTILE = {
    "nothing": b"",
    "too short": b"\x01\x02",
    "a header of 2^63 bytes": struct.pack("<Q", 1 << 63),
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "no JSON": header(b"{not json"),
    "offsets behind the file": header(entry(data_offsets=[0, 1 << 40]), b"\0" * 8),
    "offsets that disagree with the shape": header(entry(shape=[3]), b"\0" * 8),
    "offsets the wrong way round": header(entry(data_offsets=[8, 0]), b"\0" * 8),
    "a shape that overflows": header(entry(shape=[1 << 40, 1 << 40]), b"\0" * 8),
    "a negative size": header(entry(shape=[-2]), b"\0" * 8),
    "an unknown type": header(entry(dtype="F31"), b"\0" * 8),
    "bytes that belong to no tensor": header(entry(), b"\0" * 100),
    "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "deep JSON": header(b'{"a":' * 10000),
}


@pytest.mark.parametrize("data", list(HOSTILE.values()), ids=list(HOSTILE))
def test_hostile_files_are_refused(safetensors: Any, tmp_path: pathlib.Path, data: bytes) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(data)
    with pytest.raises(dlprim.FormatError, match="hostile.safetensors' is no safetensors file: ") as caught:
        weights.read_safetensors(path)
    assert "\n" not in str(caught.value)


def test_types_that_dlprim_lacks_are_told(safetensors: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "eight.safetensors"
    path.write_bytes(header(entry(dtype="F8_E4M3", data_offsets=[0, 2]), b"\0\0"))
    with pytest.raises(dlprim.UnsupportedError, match="holds 'a' of type F8_E4M3, which dlprim does not have"):
        weights.read_safetensors(path)
    with pytest.raises(dlprim.UnsupportedError, match="'c' is an array of complex128"):
        weights.write_safetensors(path, {"c": np.zeros(2, complex)})
    with pytest.raises(TypeError, match="metadata holds 'a': 3"):
        weights.write_safetensors(path, {}, metadata={"a": 3})  # type: ignore[dict-item]


def test_paths_that_are_no_files(safetensors: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone' is not there"):
        weights.read_safetensors(tmp_path / "gone")
    with pytest.raises(dlprim.FileError, match="is no regular file"):
        weights.read_safetensors(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(dlprim.FileError, match="is no regular file"):
        weights.read_safetensors(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(dlprim.FileError, match="is no regular file"):
            weights.read_safetensors(tmp_path / "socket")
    with pytest.raises(dlprim.FileError, match="cannot be written"):
        weights.write_safetensors(tmp_path / "no" / "folder", {"a": np.zeros(3)})


def test_a_file_that_fails_leaves_the_old_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.safetensors"
    weights.write_safetensors(path, {"a": np.zeros(3)})
    before = path.read_bytes()

    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(dlprim.FileError, match="cannot be written: No space left on device"):
        weights.write_safetensors(path, {"a": np.ones(30)})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["net.safetensors"]


def test_without_the_package_one_sentence_says_what_to_install(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    weights.write_safetensors(tmp_path / "a.safetensors", {"a": np.zeros(3)})  # which needs no package
    with pytest.raises(dlprim.DlprimError, match="pip install safetensors"):
        weights.read_safetensors(tmp_path / "a.safetensors")
