# SPDX-License-Identifier: MIT
"""torch.distributed with the backend "ocl" where a rank dies, does something else or gives bad arguments."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from rank_values import Tensor, mine, reduced, same_bits, values
from ranks import NEEDS_GLOO, Ranks
from torch import distributed

pytestmark = NEEDS_GLOO
TIMEOUT = 600.0
"""Of a group whose ranks must not wait until then, in seconds."""


def test_death_while_waited_for(tmp_path: Path) -> None:
    """When a rank dies while others wait for it, they raise long before the timeout, and in later calls, too."""
    with Ranks(tmp_path, 3, timeout=TIMEOUT) as group:
        group.call(reduced, "SUM", torch.float32, 10)
        for rank in (0, 1):
            group.start(rank, reduced, "SUM", torch.float32, 10)
        time.sleep(0.5)
        group.processes[2].kill()
        for _ in range(2):
            for rank in (0, 1):
                error = str(group.answer(rank, patience=TIMEOUT / 2)[1])
                assert f"ALLREDUCE failed on rank {rank} of 3" in error and "has ended" in error
                group.start(rank, reduced, "SUM", torch.float32, 10)


def other_sizes() -> None:
    """Ranks give tensors of different sizes."""
    distributed.all_reduce(mine(3 + distributed.get_rank()))


def other_operations() -> None:
    """Ranks make different operations."""
    if distributed.get_rank() == 0:
        distributed.all_reduce(mine(4))
    else:
        distributed.broadcast(mine(4), 1)


def other_pieces() -> None:
    """A rank sends fewer rows than the other expects."""
    distributed.all_to_all_single(mine(4), mine(4), [2, 2], [[1, 3], [2, 2]][distributed.get_rank()])


def test_different_operations(ranks: Ranks) -> None:
    """What ranks do differently is an error on all of them, at once, and the group works afterwards."""
    for work, expected in (
        (other_sizes, "rank 0 makes ALLREDUCE (sum) of 3 elements of Float, rank 1 makes ALLREDUCE (sum) of 4"),
        (other_operations, "rank 0 makes ALLREDUCE (sum) of 4 elements of Float, rank 1 makes BROADCAST of 4"),
        (other_pieces, "rank 0 sends 4 bytes to rank 0, which expects 8"),
    ):
        for rank, error in enumerate(ranks.errors(work)):
            assert f"failed on rank {rank} of 2" in error and expected in error and "DistBackendError" in error
    assert same_bits(ranks.call(reduced, "SUM", torch.float32, 10))


def refused(case: str) -> None:
    """Arguments that no rank may give."""
    x = mine(4)
    if case == "cpu":
        distributed.all_reduce(x.cpu())
    elif case == "list":
        distributed.all_gather([torch.empty(4, device="ocl"), torch.empty(4)], x)
    elif case == "sizes":
        distributed.all_gather_into_tensor(torch.empty(9, device="ocl"), x)
    elif case == "average":
        distributed.all_reduce(x.int(), distributed.ReduceOp.AVG)
    elif case == "bits":
        distributed.all_reduce(x, distributed.ReduceOp.BXOR)
    elif case == "received":
        if distributed.get_rank() == 0:
            distributed.send(x, 1)
        else:
            distributed.recv(x[:3], 0)
        raise ValueError("of 4 elements of Float for a tensor of 3")  # rank 0 sent it and knows nothing


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("cpu", "No backend type associated with device type cpu"),
        ("list", "tensor on cpu"),
        ("sizes", "2 times 4 elements"),
        ("average", "floating-point numbers"),
        ("bits", "for integers"),
        ("received", "4 elements of Float for a tensor of 3"),
    ],
)
def test_refused(ranks: Ranks, case: str, expected: str) -> None:
    """Bad arguments are an error before anything is sent."""
    for error in ranks.errors(refused, case):
        assert expected in error


def both_devices() -> tuple[Tensor, Tensor]:
    """A tensor of the device and one of the CPU."""
    x, y = mine(10), values(distributed.get_rank(), 10)
    distributed.all_reduce(x)
    distributed.all_reduce(y)
    return x.cpu(), y


def test_timeout_beside_gloo(tmp_path: Path) -> None:
    """A group for the device and the CPU. A rank waits for one that makes no operation until the timeout."""
    with Ranks(tmp_path, backend="cpu:gloo,ocl:ocl", timeout=3) as group:
        for x, y in group.call(both_devices):
            assert torch.equal(x, y)
        start = time.monotonic()
        group.start(0, both_devices)
        error = str(group.answer(0)[1])
        assert time.monotonic() - start > 2
        assert "ALLREDUCE failed on rank 0 of 2" in error and "init_process_group(timeout" in error
