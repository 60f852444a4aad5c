# SPDX-License-Identifier: MIT
"""Accelerate chooses the device, by a stand-in for its module of states and by itself where it is installed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import programs
import pytest

# What of accelerate/state.py chooses a device.
STATE = """
import os
import torch

class PartialState:
    def __init__(self, cpu=False):
        self._cpu = cpu
        self.num_processes = 1
        named = os.environ.get("ACCELERATE_TORCH_DEVICE")
        self.device = torch.device(named) if named else None
        self.set_device()

    def set_device(self):
        if self.device is None:
            self.device = torch.device("cpu" if self._cpu else known)

known = "cpu"
"""


def run(folder: Path, code: str, **environment: str) -> str:
    """What a program prints, with a stand-in for Accelerate in `folder`, and warnings as errors."""
    package = folder / "accelerate"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("import torch\nfrom . import state\n")
    (package / "state.py").write_text(STATE)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return python(code, PYTHONPATH=path, **environment)


def python(code: str, **environment: str) -> str:
    """What a program prints, with warnings as errors. Accelerate chooses the device unless a variable names it."""
    variables = {"ACCELERATE_TORCH_DEVICE": None, **environment}
    return programs.run(code, "-W", "error::UserWarning", **variables).strip()


STATES = "from accelerate.state import PartialState; "


def test_default(tmp_path: Path) -> None:
    """The device is `ocl` where PyTorch has no other accelerator; the program is not in its way."""
    assert run(tmp_path, STATES + "print(PartialState().device)") == "ocl"
    assert run(tmp_path, STATES + "print(PartialState(cpu=True).device)") == "cpu"
    assert run(tmp_path, STATES + "print(PartialState().device)", ACCELERATE_TORCH_DEVICE="cpu") == "cpu"
    later = "import os; import accelerate; os.environ['ACCELERATE_TORCH_DEVICE'] = 'meta'; "
    assert run(tmp_path, later + STATES + "print(PartialState().device)") == "meta"
    first = "import torch; print(torch.ones(1, device='ocl').item()); "
    assert run(tmp_path, first + STATES + "print(PartialState().device)") == "1.0\nocl"


def test_no_device(tmp_path: Path) -> None:
    """Without a device nothing changes."""
    code = STATES + "import os; print(PartialState().device, 'ACCELERATE_TORCH_DEVICE' in os.environ)"
    assert run(tmp_path, code, **programs.NO_DEVICE) == "cpu False"


def test_another_accelerator(tmp_path: Path) -> None:
    """Where PyTorch has another accelerator a warning says how to get this one."""
    code = (
        "import warnings; import torch; torch._utils._get_available_device_type = lambda: 'cuda'; "
        "from accelerate import state; state.known = 'meta'\n"
        "with warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n"
        "    print(state.PartialState().device, *(each.message for each in caught))"
    )
    words = 'Accelerate trains on "meta"; ACCELERATE_TORCH_DEVICE=ocl in the environment makes it train on "ocl".'
    assert run(tmp_path, code) == "meta " + words


def test_several_processes(tmp_path: Path) -> None:
    """Processes that train by themselves, where a program wanted one training of them all, are told."""
    code = STATES + (
        "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n"
        "    PartialState(); print(*(each.message for each in caught))"
    )
    assert "each process trains by itself" in run(tmp_path, code, WORLD_SIZE="2")


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="Accelerate is not installed")
@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_training(precision: str) -> None:
    """A model learns by Accelerate itself, with nothing on the CPU."""
    code = f"""
import torch
from accelerate import Accelerator
torch.manual_seed(0)
accelerator = Accelerator(mixed_precision={precision!r})
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
points = torch.randn(64, 8)
data = torch.utils.data.TensorDataset(points, (points.sum(1) > 0).long())
model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=16))
losses = []
for epoch in range(5):
    for batch, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
print(accelerator.device, losses[-1] < 0.7 * losses[0], torch.ocl.fallbacks())
"""
    assert python(code) == "ocl True {}"
