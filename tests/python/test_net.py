# SPDX-License-Identifier: MIT
"""Net: from JSON, inputs from numpy, outputs against numpy, weights, profiles, and what bad input gets."""

from __future__ import annotations

import copy
import gc
import json
import os
import pathlib
import pickle
import sys
import threading
import weakref

import dlprim
import numpy as np
import pytest
from small_networks import classifier, convolutions, probabilities, samples


@pytest.fixture
def net(context: dlprim.Context) -> dlprim.Net:
    net = dlprim.Net.from_json(context, classifier())
    net.initialize()
    return net


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
    with pytest.raises(dlprim.InvalidArgumentError, match="fc3.*Convolution"):
        dlprim.Net.from_json(
            host, {**classifier(), "operators": [{"name": "fc3", "type": "Convolution", "inputs": ["data"],
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
        ("max_plans", 0, "max_plans is 0"),
        ("seed", -1, "seed takes an int of at least 0"),
        ("progress", 3, "progress takes a callable"),
        ("bath", 3, "bath"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(host: dlprim.Context, option: str, value: object, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        dlprim.Net.from_json(host, classifier(), **{option: value})


def test_outputs_are_what_numpy_computes(net: dlprim.Net) -> None:
    data, labels = samples()
    expected = probabilities(net.weights(), data)
    live = net.forward(data, label=labels)
    np.testing.assert_allclose(live["prob"].numpy(), expected, rtol=1e-5)
    for outputs in (net(data, labels), net(data=data, label=labels), net.run({"data": data}, label=labels)):
        np.testing.assert_allclose(outputs["prob"], expected, rtol=1e-5)
        picked = -np.log(expected[np.arange(4), labels])
        np.testing.assert_allclose(outputs["loss"], [picked.mean()], rtol=1e-5)
    before = net(data, labels)["prob"]
    net(-data, labels)
    np.testing.assert_allclose(before, expected, rtol=1e-5)  # run() returns copies
    np.testing.assert_allclose(net.output("prob").numpy(), net.forward()["prob"].numpy())
    with pytest.raises(TypeError, match="2 inputs, data, label; 3 were given"):
        net(data, labels, data)


def test_gradients_are_what_numpy_computes(context: dlprim.Context) -> None:
    net = dlprim.Net.from_json(context, classifier(), input_gradients=True)
    net.initialize()
    data, labels = samples()
    probability = net(data, labels)["prob"]
    net.backward()
    net.context.finish()
    one_hot = np.eye(3)[labels]
    np.testing.assert_allclose(net.gradient("fc2.1").numpy(), (probability - one_hot).mean(axis=0), atol=1e-6)
    assert net.gradient_names() == ["data", "fc1.0", "fc1.1", "fc2.0", "fc2.1"]
    assert net.gradient("data").shape == (4, 8)
    assert net.changed_by_forward() == []


def test_backward_starts_from_gradients_that_are_given(context: dlprim.Context) -> None:
    net = dlprim.Net.from_json(context, convolutions(), "evaluation", input_gradients=True, output_gradients=True)
    net.initialize()
    net.output_gradient("out").fill(0)
    net(np.ones((2, 3, 8, 8), np.float32))
    net.backward()
    assert not net.gradient("data").numpy().any()
    with pytest.raises(dlprim.InvalidArgumentError, match="backward"):
        net.reshape(1)
        net.backward()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(32, dtype=np.float64).reshape(4, 8),
        np.arange(32, dtype=np.uint8).reshape(4, 8),
        np.arange(32, dtype=">f4").reshape(4, 8),
        np.arange(32, dtype=np.float32).reshape(8, 4).T.copy().T.reshape(8, 4).reshape(4, 8),
        np.asfortranarray(np.arange(32, dtype=np.float32).reshape(4, 8)),
        np.arange(31, -1, -1, dtype=np.float32)[::-1].reshape(4, 8),
        np.repeat(np.arange(32, dtype=np.float32), 2)[::2].reshape(4, 8),
        [[float(8 * i + j) for j in range(8)] for i in range(4)],
        np.arange(32, dtype=np.float16).reshape(4, 8),
    ],
    ids=["float64", "uint8", "big_endian", "copies", "fortran", "negative_stride", "strided", "list", "float16"],
)
def test_inputs_of_any_layout_hold_the_same_numbers(net: dlprim.Net, array: object) -> None:
    net.set_input("data", array)
    np.testing.assert_array_equal(net.input("data").numpy(), np.arange(32, dtype=np.float32).reshape(4, 8))


def test_an_array_may_change_once_it_was_set(net: dlprim.Net) -> None:
    data, labels = samples()
    expected = net(data, labels)["prob"]
    for _ in range(4):
        given = data.copy()
        net.set_input("data", given)
        given[:] = np.nan
        np.testing.assert_array_equal(net.run()["prob"], expected)
    read_only = data.copy()
    read_only.flags.writeable = False
    net.set_input("data", read_only)


@pytest.mark.parametrize(
    ("name", "array", "error", "says"),
    [
        ("data", np.zeros((4, 9)), ValueError, r"shape \[4, 8\], got \[4, 9\]"),
        ("data", np.zeros(32), ValueError, r"shape \[4, 8\], got \[32\]"),
        ("data", np.array([[object()] * 8] * 4), TypeError, "object"),
        ("data", np.zeros((4, 8), complex), TypeError, "complex128"),
        ("data", np.full((4, 8), "a"), TypeError, "no element type"),
        ("data", np.zeros((4, 8), "M8[s]"), TypeError, "datetime64"),
        ("label", np.array([0, 1, np.nan, 2]), ValueError, "nan at position 2, which int32 cannot hold"),
        ("label", np.array([0, 1, 0.5, 2]), ValueError, "0.5.* at position 2"),
        ("label", np.array([0, 1, 2**40, 2]), ValueError, "position 2, which int32 cannot hold"),
        ("label", np.array([0, 1, 3, 2]), ValueError, "label 3 at position 2"),
        ("label", np.array([0, -1, 2, 2]), ValueError, "label -1 at position 1"),
        ("lable", np.zeros(4), KeyError, "did you mean 'label'"),
    ],
)  # fmt: skip
def test_an_input_that_does_not_fit_is_refused(
    net: dlprim.Net, name: str, array: np.ndarray, error: type[Exception], says: str
) -> None:
    data, labels = samples()
    expected = net(data, labels)
    with pytest.raises(error, match=says):
        net.set_input(name, array)
    np.testing.assert_array_equal(net.run()["prob"], expected["prob"])


def test_labels_that_are_floats_are_checked_too(context: dlprim.Context) -> None:
    network = classifier()
    network["inputs"][1]["dtype"] = "float"
    net = dlprim.Net.from_json(context, network)
    net.set_input("label", np.array([0.0, 1.0, 2.0, 0.0]))
    with pytest.raises(ValueError, match="(?i)nan at position 1"):
        net.set_input("label", np.array([0, np.nan, 1, 1]))


def test_weights_go_to_a_dict_and_back(context: dlprim.Context, net: dlprim.Net, tmp_path: pathlib.Path) -> None:
    weights = net.weights()
    assert list(weights) == net.param_names
    assert {name: array.shape for name, array in weights.items()} == {n: net.param_shape(n) for n in net.param_names}
    np.testing.assert_array_equal(weights["fc1.0"], net.param("fc1.0").numpy())
    weights["fc1.0"][:] = 0  # a copy
    assert net.weights()["fc1.0"].any()

    other = dlprim.Net.from_json(context, classifier(), "inference")
    other.set_weights(pickle.loads(pickle.dumps(net.weights())))
    data, labels = samples()
    np.testing.assert_allclose(other(data, labels)["prob"], net(data, labels)["prob"], rtol=1e-5)
    net.save_weights(tmp_path / "weights.h5")
    loaded = dlprim.Net.from_json(context, classifier(), "inference")
    loaded.load_weights(str(tmp_path / "weights.h5"))
    np.testing.assert_array_equal(loaded(data, labels)["prob"], other(data, labels)["prob"])


def test_weights_of_other_layouts_and_types_are_taken(net: dlprim.Net) -> None:
    weights = net.weights()
    strange = {name: np.asfortranarray(array.astype(">f8")) for name, array in weights.items()}
    strange["fc1.1"] = [0] * 16
    net.set_weights(strange)
    np.testing.assert_array_equal(net.weights()["fc1.0"], weights["fc1.0"])
    assert not net.weights()["fc1.1"].any()


def test_weights_that_do_not_fit_change_nothing(net: dlprim.Net) -> None:
    before = net.weights()
    changed = {name: array + 1 for name, array in before.items()}
    missing = {name: array for name, array in changed.items() if name != "fc2.0"}
    for weights, error, says in (
        (missing, KeyError, "no values for parameter 'fc2.0'"),
        ({**changed, "fc3.0": np.zeros(1)}, KeyError, "no parameter 'fc3.0'"),
        ({**changed, "fc2.0": np.zeros((1, 3))}, ValueError, r"'fc2.0' have shape \[1, 3\]"),
        ({**changed, "fc2.0": np.array([None])}, TypeError, "object"),
    ):
        with pytest.raises(error, match=says):
            net.set_weights(weights)
        for name, array in net.weights().items():
            np.testing.assert_array_equal(array, before[name])
    net.set_weights(missing, missing_ok=True)
    np.testing.assert_array_equal(net.weights()["fc1.0"], before["fc1.0"] + 1)


def test_arguments_of_a_wrong_type_are_named(net: dlprim.Net) -> None:
    with pytest.raises(TypeError, match="a context is a dlprim.Context, not a str"):
        dlprim.Net("cpu", classifier())
    with pytest.raises(TypeError, match="a dict of arrays by name, not a list"):
        net.set_weights([1])


def test_weights_files_that_do_not_fit_are_refused(net: dlprim.Net, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        net.load_weights(tmp_path / "gone.h5")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(dlprim.DlprimError):
        net.load_weights(tmp_path / "text.h5")


def test_a_parameter_that_was_written_counts(net: dlprim.Net) -> None:
    data, labels = samples()
    net(data, labels)
    for name in ("fc2.0", "fc2.1"):
        net.param(name).fill(0)
    net.params_changed()
    np.testing.assert_allclose(net.run()["prob"], np.full((4, 3), 1 / 3), rtol=1e-6)


def test_a_net_without_values_says_so(host: dlprim.Context) -> None:
    net = dlprim.Net.from_json(host, classifier())
    for call in (net.forward, net.weights, net.profile):
        with pytest.raises(dlprim.InvalidArgumentError, match=r"'fc1.0' and 3 others have none"):
            call()
    with pytest.raises(dlprim.InvalidArgumentError, match="xavier"):
        net.initialize("xaver")


def test_reshape_takes_a_batch_or_shapes(net: dlprim.Net) -> None:
    data, labels = samples(7)
    net.reshape(7)
    assert net(data, labels)["prob"].shape == (7, 3)
    net.reshape({"data": (2, 8), "label": (2,)})
    np.testing.assert_allclose(net(data[:2], labels[:2])["prob"], probabilities(net.weights(), data[:2]), rtol=1e-5)
    with pytest.raises(dlprim.InvalidArgumentError, match="batch of 0"):
        net.reshape(0)
    with pytest.raises(dlprim.DlprimError):
        net.reshape({"data": (2, 9)})
    assert net.input_shape("data") == (2, 8)
    with pytest.raises(TypeError):
        net.reshape("2")


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
    for name, array in net.weights().items():
        np.testing.assert_array_equal(array, before[name])
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


def test_a_net_is_not_pickled_but_says_what_is(net: dlprim.Net) -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"net\.weights\(\).*save_weights\(\)"):
            refused(net)


def test_progress_is_called_and_does_not_keep_the_net(fresh_context: dlprim.Context) -> None:
    seen = []

    class Watcher:
        net: dlprim.Net

        def __call__(self, what: str, done: int, total: int) -> None:
            seen.append((what, done, total))

    watcher = Watcher()
    watcher.net = dlprim.Net.from_json(fresh_context, classifier(), progress=watcher)
    watcher.net.initialize()
    watcher.net.profile()
    assert any(what.startswith("profiling ") for what, _, _ in seen)
    assert all(0 <= done <= total for _, done, total in seen)
    reference = weakref.ref(watcher.net)
    del watcher
    gc.collect()
    assert reference() is None


def test_what_progress_raises_arrives_and_the_net_serves_on(context: dlprim.Context) -> None:
    raises = True

    def progress(what: str, done: int, total: int) -> None:
        if raises and "fc2" in what:
            raise LookupError(what)

    net = dlprim.Net.from_json(context, classifier(), progress=progress)
    net.initialize()
    with pytest.raises(LookupError, match="fc2"):
        net.profile()
        net.profile()
    raises = False
    data, labels = samples()
    np.testing.assert_allclose(net(data, labels)["prob"], probabilities(net.weights(), data), rtol=1e-5)
    assert net.profile()


def test_threads_run_nets_of_one_context(context: dlprim.Context) -> None:
    nets = []
    for seed in range(2):
        net = dlprim.Net.from_json(context, classifier(), seed=seed)
        net.initialize()
        nets.append((net, dlprim.Solver(net, "sgd", learning_rate=0.0)))
    wrong = []

    def work(index: int) -> None:
        net, solver = nets[index]
        for number in range(60):
            data, labels = samples(seed=1000 * index + number)
            net.set_input("data", data)
            net.set_input("label", labels)
            solver.step()
            found = net.output("prob").numpy()
            expected = probabilities(net.weights(), data)
            if not np.allclose(found, expected, rtol=1e-4):
                wrong.append((index, number))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [solver.steps for _, solver in nets] == [60, 60]


def test_nets_are_made_and_dropped_beside_one_that_runs(context: dlprim.Context) -> None:
    net = dlprim.Net.from_json(context, classifier())
    net.initialize()
    data, labels = samples()
    expected = net(data, labels)["prob"]
    runs = threading.Event()
    runs.set()

    def make_and_drop() -> None:
        while runs.is_set():
            other = dlprim.Net.from_json(context, classifier(batch=2), seed=3)
            other.initialize()
            solver = dlprim.Solver(other)
            other.set_input("data", np.zeros((2, 8)))
            solver.step()

    thread = threading.Thread(target=make_and_drop)
    thread.start()
    try:
        for _ in range(50):
            np.testing.assert_array_equal(net(data, labels)["prob"], expected)
    finally:
        runs.clear()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_fork_is_told_and_drops_nets_without_harm(net: dlprim.Net) -> None:
    solver = dlprim.Solver(net)
    child = os.fork()
    if child == 0:
        told = 0
        for call in (net.enqueue_forward, solver.step, net.weights):
            try:
                call()
            except dlprim.DeviceError:
                told += 1
        del call, net, solver
        gc.collect()
        os._exit(0 if told == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_tensors_outlive_their_net(context: dlprim.Context) -> None:
    net = dlprim.Net.from_json(context, classifier())
    net.initialize()
    data, labels = samples()
    output = net.forward(data, labels)["prob"]
    expected = output.numpy()
    del net
    gc.collect()
    np.testing.assert_array_equal(output.numpy(), expected)


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


def test_options_are_what_they_say(host: dlprim.Context) -> None:
    assert dlprim.Net(host, classifier(), fuse=np.bool_(False)).mode == "training"
    with pytest.raises(TypeError, match="fuse takes a bool, not an int: 1"):
        dlprim.Net(host, classifier(), fuse=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="batch takes an int, not an int: 18446744073709551616"):
        dlprim.Net(host, classifier(), batch=2**64)
    with pytest.raises(TypeError, match="extra_outputs takes a list of strings, not a str"):
        dlprim.Net(host, classifier(), extra_outputs="prob")


def test_bfloat16_weights_without_ml_dtypes(host: dlprim.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    network = {
        "inputs": [{"name": "x", "shape": [1], "dtype": "bfloat16"}],
        "outputs": ["y"],
        "operators": [{"name": "p", "type": "Parameter", "inputs": [], "outputs": ["y"],
                       "options": {"shape": [2], "dtype": "bfloat16"}}],
    }  # fmt: skip
    net = dlprim.Net(host, network, mode="inference")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    bits = np.array([0x3F80, 0xC000], np.uint16)  # 1 and -2
    net.set_weights({"p.0": bits})
    assert net.run()["y"].tolist() == [0x3F80, 0xC000]
    np.testing.assert_array_equal(net.weights()["p.0"], bits)
