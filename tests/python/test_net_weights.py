# SPDX-License-Identifier: MIT
"""Net: weights as arrays and in files, and weights that do not fit."""

from __future__ import annotations

import pathlib
import pickle
import sys

import dlprim
import numpy as np
import pytest
from small_networks import assert_same_weights, classifier, samples


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
        assert_same_weights(net.weights(), before)
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
