# SPDX-License-Identifier: MIT
"""What bad input gets: the exception that users of PyTorch expect, in one sentence that helps."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from programs import NO_DEVICE, run

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def test_out_of_memory() -> None:
    """More than the device has, and the device works afterwards."""
    total = torch.ocl.get_device_properties().total_memory
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(total, device="ocl")
    assert (torch.ones(2, device="ocl") + 1).tolist() == [2, 2]


def test_no_numpy() -> None:
    """A tensor of the device has no memory that numpy can reach."""
    with pytest.raises(TypeError, match="ocl"):
        torch.ones(2, device="ocl").numpy()


def test_two_devices() -> None:
    """Tensors of two devices do not meet."""
    with pytest.raises(RuntimeError, match="cpu.*ocl|ocl.*cpu"):
        torch.ones(2, device="ocl") + torch.ones(2)
    with pytest.raises(RuntimeError, match="cpu.*ocl|ocl.*cpu"):
        torch.ones(2, 2, device="ocl") @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="cpu.*ocl|ocl.*cpu"):
        torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3, device="ocl"), torch.ones(1, 1, 2, 2))


LAYERS: dict[str, tuple[torch.nn.Module, tuple[int, ...]]] = {
    "Conv1d": (torch.nn.Conv1d(3, 4, 3), (1, 3, 8)),
    "Conv2d": (torch.nn.Conv2d(3, 4, 3), (1, 3, 8, 8)),
    "Conv3d": (torch.nn.Conv3d(3, 4, 3), (1, 3, 5, 8, 8)),
    "ConvTranspose2d": (torch.nn.ConvTranspose2d(3, 4, 3), (1, 3, 8, 8)),
    "Linear": (torch.nn.Linear(8, 2), (1, 8)),
    "BatchNorm2d": (torch.nn.BatchNorm2d(3), (1, 3, 8, 8)),
    "LayerNorm": (torch.nn.LayerNorm(8), (2, 8)),
    "GroupNorm": (torch.nn.GroupNorm(1, 3), (1, 3, 8, 8)),
    "LSTM": (torch.nn.LSTM(8, 4), (3, 2, 8)),
    "PReLU": (torch.nn.PReLU(), (2, 8)),
}


@pytest.mark.fallback
@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_two_devices(name: str) -> None:
    """An input of the CPU beside weights of the device, and the other way round, raise: nothing runs on the CPU."""
    layer, shape = LAYERS[name]
    torch.ocl.reset_fallbacks()
    for weights, device in (("ocl", "cpu"), ("cpu", "ocl")):
        with pytest.raises(RuntimeError, match="same device"):
            layer.to(weights)(torch.ones(shape, device=device))
    assert torch.ocl.fallbacks() == {}


@pytest.mark.fallback
def test_operands_of_two_devices() -> None:
    """What runs on the CPU refuses them, too. Numbers and indices of the CPU are taken, as CUDA takes them."""
    x = torch.eye(3, device="ocl")
    with pytest.raises(RuntimeError, match="got (B|other|vec2|A|self|input) is on cpu"):
        torch.linalg.solve_triangular(x, torch.ones(3, 1), upper=True)
    with pytest.raises(RuntimeError, match="got index is on cpu"):
        x.index_select(0, torch.tensor([0]))
    assert (x + torch.tensor(1.0))[0, 1].item() == 1
    assert x[torch.tensor([1])].tolist() == [[0, 1, 0]]
    x[torch.tensor([0])] = torch.tensor(5.0)
    assert x[0].tolist() == [5, 5, 5]


def test_complex() -> None:
    """Complex numbers are held and copied; to compute with them is the CPU's."""
    x = torch.randn(3, dtype=torch.complex64)
    assert torch.equal(x.ocl().cpu(), x)
    with pytest.raises(NotImplementedError, match=r"exp.*ComplexFloat\[3\]"):
        x.ocl().exp()
    torch.ocl.set_fallback_mode("")
    torch.testing.assert_close(x.ocl().exp().cpu(), x.exp())


def test_sparse() -> None:
    """There are only strided tensors."""
    with pytest.raises(NotImplementedError, match="sparse|Sparse|strided"):
        torch.ones(2, 2).to_sparse().to("ocl")


def test_truncated_checkpoint() -> None:
    """torch.load says that the file is broken."""
    file = io.BytesIO()
    torch.save(torch.ones(1000, device="ocl"), file)
    with pytest.raises(RuntimeError, match="archive|file"):
        torch.load(io.BytesIO(file.getvalue()[:1000]))


def test_checkpoint_without_opencl(tmp_path: os.PathLike[str]) -> None:
    """A checkpoint of the device is read on a machine without one by map_location, and else the error says why."""
    file = os.path.join(tmp_path, "x.pt")
    torch.save(torch.ones(3, device="ocl"), file)
    code = (
        f"import torch; assert torch.load({file!r}, map_location='cpu').tolist() == [1, 1, 1]\n"
        f"try: torch.load({file!r})\n"
        "except RuntimeError as error: assert 'map_location' in str(error) or 'no device' in str(error), error\n"
        "else: raise SystemExit('loaded')"
    )
    run(code, **NO_DEVICE)


def test_interrupt() -> None:
    """Ctrl-C ends a long run by KeyboardInterrupt, and nothing else is said."""
    code = (
        "import torch; x = torch.ones(1000, device='ocl'); (x + 1).sum().item(); print('runs', flush=True)\n"
        "try:\n    while True: x = (x + 1).sum().expand(1000) * 0; x[0].item()\n"
        "except KeyboardInterrupt: print('stopped', (torch.ones(2, device='ocl') + 1).sum().item())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == ("stopped 4.0\n", "", 0)


def test_import_torch_does_not_import_sympy() -> None:
    """PyTorch itself imports it when torch.compile or an optimizer is first used, and the package when it exports."""
    program = "import sys, torch; print('dlprim_torch' in sys.modules, 'sympy' in sys.modules)"
    assert run(program) == "True False\n"
    assert run("import torch, dlprim_torch; print(dlprim_torch.export.__name__)") == "export\n"


def test_workers_that_leave_the_device_alone() -> None:
    """Worker processes of a DataLoader, forked after the device was used."""
    torch.ones(2, device="ocl") + 1
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context="fork")
    torch.ocl.set_fallback_mode("")
    assert torch.stack([batch[0].to("ocl") for batch in loader]).cpu().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_operator_is_named() -> None:
    """An error of the library names the operator that the program called: of a row, by hand, and around others."""
    endless = torch.ones(1, device="ocl").expand(10**12)
    with pytest.raises(torch.OutOfMemoryError, match=r"^aten::exp: "):
        endless.exp()
    with pytest.raises(torch.OutOfMemoryError, match=r"^aten::cumsum: "):
        endless.cumsum(0)
    with pytest.raises(torch.OutOfMemoryError, match=r"^aten::count_nonzero: "):
        torch.count_nonzero(endless, dim=0)
    with pytest.raises(IndexError, match=r"^\[Gather"):
        # Found by the wait, whose operator is not to blame.
        torch.nn.functional.embedding(torch.tensor([7], device="ocl"), torch.ones(5, 2, device="ocl")).tolist()


def test_operator_that_the_cpu_lacks() -> None:
    """It has nowhere to run, and is named in one sentence."""
    q, lengths = torch.randn(12, 2, 8).ocl(), torch.tensor([0, 5, 12], dtype=torch.int32).ocl()
    wanted = "no kernel for aten::_flash_attention_forward, and neither has the CPU"
    with pytest.raises(NotImplementedError, match=wanted) as error:
        torch.ops.aten._flash_attention_forward(q, q, q, lengths, lengths, 7, 7, 0.0, False, False)
    assert "\n" not in str(error.value)


def test_kernels_are_registered_by_name() -> None:
    """Kernels by hand go by DLPRIM_TORCH_KERNELS, and only the table of rows names its operators otherwise."""
    sources = Path(__file__).parent.parent / "csrc" / "ops"
    plain = "TORCH_LIBRARY_IMPL(aten, PrivateUse1,"
    assert [file.name for file in sorted(sources.glob("*.cpp")) if plain in file.read_text()] == ["table.cpp"]


def sparse_gradient() -> object:
    """Gradients of rows alone."""
    layer = torch.nn.Embedding(10, 4, sparse=True).to("ocl")
    return layer(torch.tensor([1, 2], device="ocl")).sum().backward()


def data_parallel() -> object:
    """Several devices in one process."""
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2).to("ocl"))
    return model(torch.ones(4, 2, device="ocl"))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (sparse_gradient, "no sparse tensors, so a layer such as Embedding needs sparse=False"),
        (data_parallel, "DistributedDataParallel"),
    ],
)
def test_parts_that_are_not_there(program: Callable[[], object], words: str) -> None:
    """A part of PyTorch that the device lacks is named in one sentence, which says what works instead."""
    with pytest.raises(Exception, match=words) as caught:
        program()
    assert len(str(caught.value)) < 400


def test_default_backend_of_compile() -> None:
    """Inductor's graphs of the device are dlprim's, with inputs or without, and those of the CPU stay its own."""
    assert torch.equal(torch.compile(lambda: torch.ones(2, device="ocl"))().cpu(), torch.ones(2))
    layer = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    expected = layer(x)
    assert torch.allclose(torch.compile(layer)(x), expected)
    for backend in ("inductor", "eager"):
        assert torch.allclose(torch.compile(layer.to("ocl"), backend=backend)(x.to("ocl")).cpu(), expected)


def test_end_beside_a_backward_pass() -> None:
    """What Python calls when it ends waits for PyTorch's thread of backward passes, which it would abort."""
    code = (
        "import threading, time, sys, torch\n"
        "begun, done = threading.Event(), threading.Event()\n"
        "class Slow(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x): return x * 1\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        begun.set(); time.sleep(0.5); done.set(); return g\n"
        "x = torch.ones(2, device='ocl', requires_grad=True)\n"
        "loss = Slow.apply(x).sum()\n"
        "caller = threading.Thread(target=loss.backward)\n"
        "caller.start(); begun.wait(); torch.ocl._at_exit(); print(done.is_set()); caller.join(); sys.exit(3)"
    )
    assert run(code, returns=3) == "True\n"


def test_an_engine_that_is_wrong(tmp_path: Path) -> None:
    """Where the only engine of an operator gives wrong results, the host computes, and a warning says so once."""
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "gather", kernels / "gather")
    source = kernels / "gather" / "reference.cl"
    good = "x + x_offset + slot * slice"
    assert good in source.read_text()
    source.write_text(source.read_text().replace(good, "x + x_offset + (slot ? slot : 1) * slice"))
    code = """
import warnings

import torch

x = torch.arange(12.0).reshape(4, 3).to("ocl")
places = torch.tensor([0, 3, 1, 0], device="ocl")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        print(torch.index_select(x, 0, places).cpu().tolist())
for warning in caught:
    print(warning.message)
"""
    lines = run(code, DLPRIM_KERNELS_DIR=str(kernels), DLPRIM_CACHE_DIR=str(tmp_path / "cache")).splitlines()
    assert lines[:2] == ["[[0.0, 1.0, 2.0], [9.0, 10.0, 11.0], [3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]"] * 2
    told = [line for line in lines[2:] if "is computed on the host" in line]
    assert len(told) == 1
    assert "aten::index_select: [Gather 'Gather']" in told[0]
    assert "its results are wrong" in told[0]
