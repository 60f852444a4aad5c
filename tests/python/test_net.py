# SPDX-License-Identifier: MIT
"""Net: what it is made of, its options, and what it tells of itself."""

from __future__ import annotations

import json
import pathlib

import dlprim
import numpy as np
import pytest
from small_networks import assert_same_weights, classifier, initialized, samples, set_batch


def test_a_net_comes_from_a_dict_a_text_or_a_path(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    text = json.dumps(classifier())
    path = tmp_path / "net.json"
    path.write_text(text)
    for source in (classifier(), text, path, str(path)):
        net = dlprim.Net.from_json(context, source)
        assert net.input_names == ["data", "label"]
        assert net.param_names == ["fc1.0", "fc1.1", "fc2.0", "fc2.1"]
    shape = np.array([4, 8])
    numpy_dict = {**classifier(), "inputs": [{"name": "data", "shape": shape}, classifier()["inputs"][1]]}
    assert dlprim.Net(context, numpy_dict).input_shape("data") == (4, 8)


def test_a_source_that_is_none_is_refused(host: dlprim.Context, tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="JSON text, a dict or a path, not as a int"):
        dlprim.Net.from_json(host, 3)
    with pytest.raises(TypeError, match="cannot hold a object"):
        dlprim.Net.from_json(host, {"inputs": object()})
    with pytest.raises(dlprim.FormatError, match="network:1"):
        dlprim.Net.from_json(host, "{")
    with pytest.raises(FileNotFoundError, match=r"gone\.json"):
        dlprim.Net.from_json(host, tmp_path / "gone.json")
    with pytest.raises(dlprim.InvalidArgumentError, match="fc3.*Convolve"):
        dlprim.Net.from_json(
            host, {**classifier(), "operators": [{"name": "fc3", "type": "Convolve", "inputs": ["data"],
                                                  "outputs": ["x"]}]})  # fmt: skip


def test_what_a_net_knows_of_itself(net: dlprim.Net) -> None:
    assert net.mode == "training"
    assert net.precision == "fp32"
    assert net.output_names == ["prob", "loss"]
    assert net.loss_names == ["loss"]
    assert net.loss_weights == {"loss": 1.0}
    assert net.has_loss
    assert net.is_trainable("fc1.0")
    assert not net.is_trainable("nothing")
    assert net.label_classes("label") == 3
    assert net.label_classes("data") == 0
    assert net.input_shape("label") == (4,)
    assert net.input_dtype("data") == "float32"
    assert net.input_dtype("label") == "int32"
    assert net.param_shape("fc1.0") == (16, 8)
    assert net.param_dtype("fc1.0") == "float32"
    assert net.context.info.name in repr(net)
    with pytest.raises(dlprim.NotFoundError, match="did you mean 'data'"):
        net.input_shape("dat")


OPTIONS = {
    "batch": 2,
    "input_shapes": {"data": (2, 8), "label": [2]},
    "extra_outputs": ["h"],
    "input_gradients": True,
    "output_gradients": True,
    "without_losses": True,
    "backward": False,
    "fuse": False,
    "engines": {"nothing": "matmul.host"},
    "precision": "tf32",
    "precisions": [("fc1", "fp32"), ("InnerProduct", "tf32")],
    "keep_parameters": True,
    "memory_limit": 1 << 30,
    "max_plans": 1,
    "seed": 7,
    "tune_seconds": 0.001,
    "progress": print,
}


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_every_option_is_a_keyword(host: dlprim.Context, option: str) -> None:
    if option == "engines":
        with pytest.raises(dlprim.DlprimError, match="nothing"):
            dlprim.Net.from_json(host, classifier(), engines=OPTIONS["engines"]).prepare()
        return
    mode = "inference" if option == "keep_parameters" else "training"
    net = dlprim.Net.from_json(host, classifier(), mode, **{option: OPTIONS[option]})
    net.prepare()
    if option in ("batch", "input_shapes"):
        assert net.input_shape("data") == (2, 8)
    if option == "extra_outputs":
        assert net.output_names == ["prob", "loss", "h"]
    if option == "input_gradients":
        assert net.gradient("data").shape == (4, 8)
    if option == "output_gradients":
        assert net.output_gradient_names() == ["loss", "prob"]
        assert net.output_gradient("prob").shape == (4, 3)
    if option == "backward":
        assert net.gradient_names() == []
    if option == "precision":
        assert net.precision == "tf32"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("mode", "train", "mode 'train' is none of"),
        ("batch", "2", "batch takes an int, not a str"),
        ("batch", -1, "batch of -1"),
        ("input_shapes", {"data": "x"}, "a shape is"),
        ("input_shapes", {"dta": [1]}, "did you mean 'data'"),
        ("extra_outputs", [3], "extra_outputs takes a list of strings"),
        ("extra_outputs", ["hh"], "'hh'"),
        ("engines", {"fc1": 3}, "engines takes a dict or pairs of strings"),
        ("precision", "fp8", "fp8"),
        ("precision", 8, "precision takes a string"),
        ("precisions", {"fc1": "fp8"}, "fp8"),
        ("memory_limit", -1, "memory_limit takes an int of at least 0"),
        ("max_plans", 0, "max_plans is 0"),
        ("seed", -1, "seed takes an int of at least 0"),
        ("progress", 3, "progress takes a callable"),
        ("bath", 3, "bath"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(host: dlprim.Context, option: str, value: object, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        dlprim.Net.from_json(host, classifier(), **{option: value})


def test_options_are_what_they_say(host: dlprim.Context) -> None:
    assert dlprim.Net(host, classifier(), fuse=np.bool_(False)).mode == "training"
    with pytest.raises(TypeError, match="fuse takes a bool, not an int: 1"):
        dlprim.Net(host, classifier(), fuse=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="batch takes an int, not an int: 18446744073709551616"):
        dlprim.Net(host, classifier(), batch=2**64)
    with pytest.raises(TypeError, match="extra_outputs takes a list of strings, not a str"):
        dlprim.Net(host, classifier(), extra_outputs="prob")


def test_without_losses_names_what_is_left(context: dlprim.Context) -> None:
    network = {
        "inputs": [{"name": "data", "shape": [2, 3]}, {"name": "label", "shape": [2], "dtype": "int"}],
        "outputs": ["scores", "loss"],
        "operators": [
            {"name": "scores", "type": "InnerProduct", "inputs": ["data"], "outputs": ["scores"],
             "options": {"outputs": 4}},
            {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]},
        ],
    }  # fmt: skip
    net = dlprim.Net(context, network, mode="inference", without_losses=True)
    net.initialize()
    assert list(net.run(data=np.zeros((2, 3)))) == ["scores"] == net.output_names
    assert (net.has_loss, net.loss_names, net.loss_weights) == (False, [], {})
    del network["outputs"][0]  # a loss that is the only output stays
    assert dlprim.Net(context, network, mode="inference", without_losses=True).output_names == ["loss"]


def test_a_profile_is_a_list_of_records(net: dlprim.Net) -> None:
    before = net.weights()
    dlprim.Solver(net)
    nodes = net.profile(whole_step=True)
    assert {node.part for node in nodes} == {"forward", "backward", "update"}
    assert all(isinstance(node, dlprim.NodeReport) for node in nodes)
    assert sum(node.ms for node in nodes) > 0
    fc1 = next(node for node in nodes if node.name == "fc1")
    assert fc1.type == "InnerProduct"
    assert fc1.engine
    assert fc1.device
    assert fc1.gflop == pytest.approx(2 * 4 * 16 * 8e-9)
    assert fc1.params == 16 * 8 + 16
    assert fc1.gbytes > 0 and fc1.bound_ms > 0 and fc1.start_ms >= 0 and isinstance(fc1.fused, list)
    assert "fc1" in repr(fc1)
    assert_same_weights(net.weights(), before)
    assert all(node.ms == 0 for node in net.nodes())
    assert {node.part for node in net.profile()} == {"forward", "backward", "update"}


def test_memory_and_notes_are_told(net: dlprim.Net) -> None:
    assert net.planned_peak_bytes() > 0
    assert net.planned_setup_peak_bytes() >= 0
    assert "fc1" in net.memory_report() or net.memory_report()
    assert isinstance(net.notes(), list)


def test_the_first_nan_is_found(net: dlprim.Net) -> None:
    data, labels = samples()
    net(data, labels)
    assert net.first_nan() == ""
    weights = net.weights()
    weights["fc2.1"][0] = np.nan
    net.set_weights(weights)
    net.run()
    assert net.first_nan() == "fc2"


def test_an_input_that_was_never_set_is_named(context: dlprim.Context) -> None:
    net = initialized(context)
    data, labels = samples()
    with pytest.raises(dlprim.InvalidArgumentError, match="values of all inputs, and 'data', 'label' were never set"):
        net.forward()
    with pytest.raises(dlprim.InvalidArgumentError, match="'label' was never set"):
        net(data)
    net(data, labels)
    net(data)  # labels stay
    solver = dlprim.Solver(net)
    with pytest.raises(dlprim.InvalidArgumentError, match=r"step\(\) needs values of all inputs, and 'data', 'label'"):
        solver.step()
    net.set_input("data", data)
    net.input("label").copy_from(labels)
    solver.step()


def test_an_output_has_no_values_before_a_forward(context: dlprim.Context) -> None:
    net = initialized(context)
    data, labels = samples()
    set_batch(net, data, labels)
    with pytest.raises(dlprim.InvalidArgumentError, match="output 'prob' has no values before a forward"):
        net.output("prob")
    net.forward()
    assert np.isfinite(net.output("prob").numpy()).all()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x89HDF\r\n\x1a\n", "seems to be an HDF5 file .weights or data., and JSON is expected"),
        (b"\x89PNG\r\n", "seems to be a PNG picture, and JSON is expected"),
        (b"\x08\x07\x12\x04", "seems to be an ONNX model, and JSON is expected"),
        (b'{"net": "net.json", "data": {}}', "seems to be a training configuration, and a network is expected"),
    ],
)
def test_files_of_other_kinds_are_recognised(
    host: dlprim.Context, tmp_path: pathlib.Path, content: bytes, says: str
) -> None:
    path = tmp_path / "net.json"
    path.write_bytes(content)
    with pytest.raises(dlprim.FormatError, match=says):
        dlprim.Net(host, path)


def test_what_is_given_in_the_place_of_something_else_is_recognised(
    host: dlprim.Context, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "net.json").write_text("{}")
    with pytest.raises(dlprim.FormatError, match="seems to be JSON, and an ONNX model is expected"):
        (tmp_path / "net.onnx").write_text('{"a": 1}')
        dlprim.Net.from_onnx(host, tmp_path / "net.onnx")
    with pytest.raises(dlprim.FormatError, match="JSON is expected, and '.*w.h5' seems to be the path of a file"):
        dlprim.Net(host, str(tmp_path / "w.h5"))
    with pytest.raises(dlprim.MissingFileError, match="there is no file 'none.json'"):
        dlprim.Net.from_json(host, "none.json")
    with pytest.raises(dlprim.NotFoundError, match="which seems to be the path of a file"):
        dlprim.Context("net.json")
    net = dlprim.Net(host, classifier())
    with pytest.raises(dlprim.FormatError, match="seems to be JSON, and an HDF5 file .weights or data. is expected"):
        net.load_weights(tmp_path / "net.json")


def test_keywords_by_other_names_are_offered_ours(host: dlprim.Context) -> None:
    with pytest.raises(TypeError, match=r"Net\(\) has no argument 'batch_size'; did you mean 'batch'"):
        dlprim.Net(host, classifier(), batch_size=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Solver\(\) has no argument 'lr'; did you mean 'learning_rate'"):
        dlprim.Solver(dlprim.Net(host, classifier()), lr=0.1)  # type: ignore[call-arg]
    wrong = classifier()
    wrong["operators"][0]["options"] = {"units": 4}
    with pytest.raises(dlprim.InvalidArgumentError, match="there is no option 'units'; did you mean 'outputs'"):
        dlprim.Net(host, wrong)
