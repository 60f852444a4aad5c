# SPDX-License-Identifier: MIT
"""Networks as tables: print(model) and print(net)."""

from __future__ import annotations

import dlprim
import numpy as np
import pytest
from dlprim import nn
from dlprim.summary import LayerRecord, ParamRecord, TensorRecord, count_params, dtype_name, table


def small_model() -> nn.Model:
    x = nn.Input("data", (4, 3, 8, 8))
    y = nn.BatchNorm()(nn.Conv2d(6, 3, bias=False)(x))
    fc = nn.Linear(1000, name="fc")
    logits = fc(nn.flatten(y))
    return nn.Model(x, {"logits": logits, "loss": nn.softmax_with_loss(logits)}, name="small")


EXPECTED = """\
Model 'small'
---------------------------------------------------------------------
Layer         Type           Output shape  Parameters  Connected to
=====================================================================
data          Input          (4, 3, 8, 8)           0
label         Input          (4,) int32             0
conv2d_1      Convolution    (4, 6, 6, 6)         162  data
batch_norm_1  BatchNorm      (4, 6, 6, 6)          24  conv2d_1
flatten_1     Flatten        (4, 216)               0  batch_norm_1
fc            InnerProduct   (4, 1000)        217,000  flatten_1
loss          SoftmaxWithLoss  (1,)                 0  fc, label
---------------------------------------------------------------------
Parameters: 217,186 (848.38 KiB)
Trainable:  217,174 (848.34 KiB)
Other:      12 (48 B)"""


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not set(line) <= set("-=")]


def test_a_model_is_shown_as_a_table() -> None:
    assert words(str(small_model())) == words(EXPECTED)


def test_columns_stand_one_below_the_other() -> None:
    lines = str(small_model()).splitlines()
    start = lines[2].index("Connected to")
    assert [line[start:] for line in lines[4:-4]] == [
        "",
        "",
        "data",
        "conv2d_1",
        "batch_norm_1",
        "flatten_1",
        "fc, label",
    ]
    right = lines[2].index("Parameters") + len("Parameters")
    assert all(line[right - 1].isdigit() for line in lines[4:-4])
    assert all(len(line) == len(lines[1]) for line in lines if line and set(line) <= set("-="))


def test_shared_parameters_count_once() -> None:
    x = nn.Input("data", (2, 4))
    layer = nn.Linear(4)
    model = nn.Model(x, layer(layer(x)))
    text = str(model)
    assert "20 (shared)" in text and "Parameters: 20 (80 B)" in text
    assert count_params(model.layers) == (20, 0)


def test_frozen_layers_are_among_the_others() -> None:
    x = nn.Input("data", (2, 4))
    model = nn.Model(x, nn.Linear(2)(nn.Linear(4, frozen=True)(x)))
    assert count_params(model.layers) == (10, 20)
    assert words(str(model))[-2:] == [["Trainable:", "10", "(40", "B)"], ["Other:", "20", "(80", "B)"]]


def test_long_names_are_cut_to_the_width() -> None:
    x = nn.Input("data" * 30, (2, 4))
    text = nn.Model(x, nn.relu(x, name="activation" * 20)).summary(width=70)
    assert max(map(len, text.splitlines())) <= 70
    assert "datadata" in text and "..." in text


def test_names_from_files_move_no_cursor() -> None:
    layer = LayerRecord("a\x1b[2Jb\nc", "Activation", (), (TensorRecord("y", (2, 3)),), ())
    assert "a\\x1b[2Jb\\nc" in table([layer])


def test_wide_characters_keep_the_columns() -> None:
    rows = [LayerRecord(name, "Activation", (), (TensorRecord(name, (2, 3)),), ()) for name in ("層一", "ab")]
    first, second = table(rows).splitlines()[3:5]
    assert first.index("Activation") + 2 == second.index("Activation")  # two characters that are two columns wide


def test_a_tensor_that_is_worked_on_in_place_is_connected_to_its_last_maker() -> None:
    tensor = TensorRecord("x", (2, 3))
    layers = [
        LayerRecord("x", "Input", (), (tensor,)),
        LayerRecord("first", "Activation", ("x",), (tensor,)),
        LayerRecord("second", "Activation", ("x",), (tensor,)),
    ]
    lines = table(layers).splitlines()
    assert lines[4].endswith(" x") and lines[5].endswith(" first")


def test_bytes_follow_the_types() -> None:
    params = (ParamRecord("a", (1024, 1024), "float16"), ParamRecord("b", (), "float64", False))
    text = table([LayerRecord("x", "Parameter", (), (), params)])
    assert "Parameters: 1,048,577 (2.00 MiB)" in text and "Other:      1 (8 B)" in text


@pytest.mark.parametrize(
    ("given", "name"),
    [("float", "float32"), ("half", "float16"), ("int", "int32"), (np.float64, "float64"), (np.dtype("uint8"), "uint8"),
     (bool, "bool"), (float, "float32"), ("bfloat16", "bfloat16")],
)  # fmt: skip
def test_names_of_types(given: object, name: str) -> None:
    assert dtype_name(given) == name


def test_types_that_tensors_do_not_have() -> None:
    for given in ("float8", np.complex64, object, 3, None):
        with pytest.raises(TypeError, match="tensors have no element type"):
            dtype_name(given)


def test_a_net_is_shown_as_its_model_is(host: dlprim.Context) -> None:
    model = small_model()
    net = model.build(host, mode="training")
    assert words(str(net)) == words(str(model))[1:]
    assert "217,186" in str(net)
