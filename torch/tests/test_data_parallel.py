# SPDX-License-Identifier: MIT
"""DistributedDataParallel with the backend "ocl" in two processes, and the program of the page started by torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest.mock
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rank_values import SIZE, Tensor
from ranks import NEEDS_GLOO, Ranks
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

pytestmark = NEEDS_GLOO


def network() -> torch.nn.Module:
    """A small convolutional network, the same in all processes."""
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, padding=1, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, 10),
    ).to("ocl")


def train(model: torch.nn.Module, rank: int, size: int, call: Callable[[Tensor], Tensor] | None = None) -> list[Tensor]:
    """Four steps on a rank's part of each batch, by `call` where it stands for the model."""
    call = model if call is None else call
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        images, labels = torch.randn(8, 1, 8, 8, generator=generator), torch.randint(10, (8,), generator=generator)
        own = slice(rank * 8 // size, (rank + 1) * 8 // size)
        loss = torch.nn.functional.cross_entropy(call(images[own].to("ocl")), labels[own].to("ocl"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def parallel(bucket_mb: float, hook: bool) -> tuple[list[Tensor], str]:
    """A rank's part of test_data_parallel."""
    model = DistributedDataParallel(network(), bucket_cap_mb=bucket_mb, gradient_as_bucket_view=hook)
    if hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model.register_comm_hook(None, default_hooks.allreduce_hook)
    return train(model, distributed.get_rank(), SIZE), torch.ocl.get_device_name()


@pytest.mark.parametrize(("bucket_mb", "hook"), [(25.0, False), (0.001, False), (0.001, True)])
def test_data_parallel(ranks: Ranks, bucket_mb: float, hook: bool) -> None:
    """Two ranks train as one process with the whole batch, and the same, bit for bit, in each run."""
    results = ranks.call(parallel, bucket_mb, hook)
    again = ranks.call(parallel, bucket_mb, hook)
    for one, other, alone in zip(results[0][0], results[1][0], train(network(), 0, 1), strict=True):
        torch.testing.assert_close(one, alone, rtol=1e-4, atol=1e-5)
        if results[0][1] == results[1][1]:  # other devices round the optimizer's step otherwise
            assert torch.equal(one, other)
        else:
            torch.testing.assert_close(one, other)
    for rank in range(SIZE):
        for one, other in zip(results[rank][0], again[rank][0], strict=True):
            assert torch.equal(one, other)


def compiled(bucket_mb: float) -> tuple[list[Tensor], dict[str, int]]:
    """A rank's part of test_compiled."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    model = DistributedDataParallel(network(), bucket_cap_mb=bucket_mb)
    with unittest.mock.patch("torch.distributed._DEFAULT_FIRST_BUCKET_BYTES", 1024):  # no bucket may be smaller
        trained = train(model, distributed.get_rank(), SIZE, torch.compile(model))
    return trained, torch.ocl.fallbacks()


@pytest.mark.parametrize("bucket_mb", [25.0, 0.002])
def test_compiled(ranks: Ranks, bucket_mb: float) -> None:
    """Two ranks train a compiled model as they train an eager one. Dynamo cuts it where buckets end."""
    for (made, fallbacks), (wanted, _) in zip(
        ranks.call(compiled, bucket_mb), ranks.call(parallel, bucket_mb, False), strict=True
    ):
        assert fallbacks == {}
        for one, other in zip(made, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


PAGE = Path(__file__).parents[2] / "docs" / "torch.md"


def test_torchrun(tmp_path: Path) -> None:
    """The program of docs/torch.md, started by torchrun, says nothing but what it prints."""
    program = tmp_path / "program.py"
    section = PAGE.read_text().split("## Several devices")[1]
    program.write_text(section.split("```python\n")[1].split("```")[0])
    # Each rank prints into a file: in one place their lines can mix.
    own_files = ["--redirects=1", f"--log-dir={tmp_path / 'printed'}"]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *own_files, str(program)],
        env={**os.environ, "POCL_DEVICES": "pthread pthread", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    losses = dict(file.read_text().split() for file in (tmp_path / "printed").rglob("stdout.log"))
    assert sorted(losses) == ["0", "1"] and done.stdout == ""
    assert all(0.3 < float(loss) < 0.7 for loss in losses.values())
    assert "Warning" not in done.stderr, done.stderr
