# SPDX-License-Identifier: MIT
"""A program whose types test_typing.py has mypy check; it is not run."""

from __future__ import annotations

import pathlib

import dlprim
import numpy as np
import numpy.typing as npt
from dlprim import nn, ops, weights

context: dlprim.Context = dlprim.Context("cpu")
names: list[str] = [info.name for info in dlprim.devices()]
bytes_of_device: int = context.counters.allocated_bytes
include: str = dlprim.get_include()

# Tensors.
array: npt.NDArray[np.float32] = np.zeros((2, 3), dtype=np.float32)
tensor: dlprim.Tensor = dlprim.Tensor(context, array)
typed: dlprim.Tensor = dlprim.Tensor(context, [[1, 2], [3, 4]], dtype="float16")
back: npt.NDArray[np.float32] = tensor.numpy()
shape: tuple[int, ...] = tensor.shape
total: dlprim.Tensor = 2 * tensor[:, :2] + 1 - tensor.T.reshape(2, 3)[:, 1:]
number: float = float(ops.mean(tensor))

# Operators.
image = dlprim.Tensor.zeros(context, (1, 3, 8, 8))
filters = dlprim.Tensor.full(context, (4, 3, 3, 3), 0.1)
y: dlprim.Tensor = ops.relu(ops.conv2d(image, filters, stride=2, padding=1))

# Networks.
x: nn.Symbol = nn.Input("data", (16, 1, 28, 28))
scores: nn.Symbol = nn.Sequential([nn.Conv2d(8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(10)])(x)
model: nn.Model = nn.Model(x, {"scores": scores, "loss": nn.softmax_with_loss(scores)})
net: dlprim.Net = model.build(context)
other: dlprim.Net = dlprim.Net.from_json(context, {"inputs": [], "outputs": [], "operators": []}, mode="inference")
net.initialize()
solver: dlprim.Solver = dlprim.Solver(net, learning_rate=0.01)
net.set_input("data", np.zeros((16, 1, 28, 28), np.float32))
solver.step()
loss: float = net.output("loss").item()
slowest: str = max(net.profile(), key=lambda record: record.ms).name
parameters: dict[str, npt.NDArray[np.float32]] = net.weights()
net.save_weights(pathlib.Path("weights.h5"))
matches: weights.Matches = weights.load_safetensors(net, "weights.safetensors")

try:
    dlprim.Context("no such device")
except dlprim.NotFoundError as error:
    sentence: str = str(error)
