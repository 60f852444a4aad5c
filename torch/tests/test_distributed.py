# SPDX-License-Identifier: MIT
"""torch.distributed with the backend "ocl": collective operations in two processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from programs import busy, ever
from rank_values import SIZE, Tensor, mine, reduced, same_bits, values
from ranks import NEEDS_GLOO, Ranks
from torch import distributed

pytestmark = NEEDS_GLOO


# Reductions.


REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "AVG": lambda a, b: (a + b) / 2,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_reduce(ranks: Ranks, name: str) -> None:
    """Each reduction equals the CPU's, with the same bits on all ranks, also where elements do not divide evenly."""
    dtypes = [torch.int32, torch.int64, torch.uint8] if name.startswith("B") else [torch.float32, torch.float16]
    for dtype in dtypes:
        for count in (1, 1001):
            expected = REDUCTIONS[name](*[values(rank, count, dtype) for rank in range(SIZE)])
            results = ranks.call(reduced, name, dtype, count)
            assert same_bits(results)
            torch.testing.assert_close(results[0], expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.int8, torch.complex64, torch.bool])
def test_all_reduce_of_types(ranks: Ranks, dtype: torch.dtype) -> None:
    """Sums of other types."""
    expected = values(0, 100, dtype) + values(1, 100, dtype)
    results = ranks.call(reduced, "SUM", dtype, 100)
    assert same_bits([torch.view_as_real(r) if r.is_complex() else r for r in results])
    torch.testing.assert_close(results[0], expected)


def strided() -> tuple[Tensor, Tensor, Tensor]:
    """Sums of a transposed tensor, one without dimensions, and one without elements."""
    x = mine(12).view(3, 4).t()
    distributed.all_reduce(x)
    y = mine(1).squeeze()
    distributed.all_reduce(y)
    z = mine(0)
    distributed.all_reduce(z)
    return x.cpu(), y.cpu(), z.cpu()


def test_all_reduce_of_shapes(ranks: Ranks) -> None:
    """Whatever the strides, results are written into the tensor."""
    for x, y, z in ranks.call(strided):
        torch.testing.assert_close(x, (values(0, 12) + values(1, 12)).view(3, 4).t())
        torch.testing.assert_close(y, (values(0, 1) + values(1, 1)).squeeze())
        assert z.shape == (0,)


TERMS = (1e8, 1.0, -1e8)


def tree() -> list[Tensor]:
    """A rank's part of test_tree_of_ranks."""
    sums = []
    for shift in range(3):
        x = torch.tensor([TERMS[(distributed.get_rank() + shift) % 3]], device="ocl")
        distributed.all_reduce(x)
        sums.append(x.cpu())
    return sums


def test_tree_of_ranks(tmp_path: Path) -> None:
    """Three ranks are added as (0 + 1) + 2, which rounding shows. When one is gone, the others learn it."""
    with Ranks(tmp_path, 3) as group:
        expected = []
        for shift in range(3):
            one, two, three = (torch.tensor([TERMS[(i + shift) % 3]]) for i in range(3))
            expected.append((one + two) + three)
        assert len({float(x) for x in expected}) > 1
        assert group.call(tree) == [expected] * 3
        group.processes[2].kill()
        group.start(0, tree)
        group.start(1, tree)
        for rank in (0, 1):
            error = str(group.answer(rank)[1])
            assert f"ALLREDUCE failed on rank {rank} of 3" in error and "Another rank has ended" in error


def reduced_to_one() -> tuple[Tensor, Tensor, Tensor]:
    """A rank's part of test_reduce."""
    x = mine()
    distributed.reduce(x, 1)
    parts = [mine(10) + i for i in range(SIZE)]
    y = torch.empty(10, device="ocl")
    distributed.reduce_scatter(y, parts)
    z = torch.empty(5, device="ocl")
    distributed.reduce_scatter_tensor(z, mine(10))
    return x.cpu(), y.cpu(), z.cpu()


def test_reduce(ranks: Ranks) -> None:
    """The root alone gets the sum; reduce_scatter gives each rank its part."""
    results = ranks.call(reduced_to_one)
    assert torch.equal(results[0][0], values(0))
    torch.testing.assert_close(results[1][0], values(0) + values(1))
    both = values(0, 10) + values(1, 10)
    for rank, (_, y, z) in enumerate(results):
        torch.testing.assert_close(y, both + 2 * rank)
        torch.testing.assert_close(z, both[5 * rank : 5 * rank + 5])


# Values that only move.


def moved() -> dict[str, Tensor]:
    """A rank's part of test_moves."""
    rank = distributed.get_rank()
    found = {"broadcast": mine(dtype=torch.int64)}
    distributed.broadcast(found["broadcast"], 1)
    lists = [torch.empty(7, device="ocl") for _ in range(SIZE)]
    distributed.all_gather(lists, mine(7))
    found["all_gather"] = torch.stack(lists)
    found["into_tensor"] = torch.empty(SIZE, 7, device="ocl")
    distributed.all_gather_into_tensor(found["into_tensor"], mine(7))
    distributed.gather(mine(7), lists if rank == 0 else None, 0)
    found["gather"] = torch.stack(lists)
    found["scatter"] = torch.empty(7, device="ocl")
    distributed.scatter(found["scatter"], [mine(7) + i for i in range(SIZE)] if rank == 1 else None, 1)
    # Rank 0 sends 1 row to itself and 2 to rank 1; rank 1 sends 3 and 1.
    sends, receives = [[1, 2], [3, 1]][rank], [[1, 3], [2, 1]][rank]
    found["all_to_all"] = torch.empty(sum(receives), 2, device="ocl")
    distributed.all_to_all_single(found["all_to_all"], mine(2 * sum(sends)).view(-1, 2), receives, sends)
    lists = [torch.empty(n, device="ocl") for n in receives]
    distributed.all_to_all(lists, list(torch.split(mine(sum(sends)), sends)))
    found["lists"] = torch.cat(lists)
    distributed.barrier()
    return {name: value.cpu() for name, value in found.items()}


def test_moves(ranks: Ranks) -> None:
    """Broadcast, gathers, scatter and all_to_all give the values that the CPU has."""
    both = torch.stack([values(0, 7), values(1, 7)])
    for rank, found in enumerate(ranks.call(moved)):
        assert torch.equal(found["broadcast"], values(1, dtype=torch.int64))
        for name in ("all_gather", "into_tensor", "gather"):
            assert torch.equal(found[name], both)
        assert torch.equal(found["scatter"], values(1, 7) + rank)
        rows = [values(0, 6).view(-1, 2), values(1, 8).view(-1, 2)]
        parts = [[rows[0][:1], rows[1][:3]], [rows[0][1:], rows[1][3:]]][rank]
        assert torch.equal(found["all_to_all"], torch.cat(parts))
        flat = [values(0, 3), values(1, 4)]
        assert torch.equal(found["lists"], torch.cat([[flat[0][:1], flat[1][:3]], [flat[0][1:], flat[1][3:]]][rank]))


def sent() -> tuple[Tensor, Tensor, int, list[object]]:
    """A rank's part of test_send."""
    rank = distributed.get_rank()
    x, y = torch.empty(9, device="ocl"), torch.empty(3, device="ocl")
    # Both send before they receive.
    work = [distributed.isend(mine(9), 1 - rank), distributed.irecv(x, 1 - rank)]
    for one in work:
        assert one is not None
        one.wait()
    source = -1
    if rank == 0:
        distributed.send(mine(3), 1, tag=5)
    else:
        source = distributed.recv(y, tag=5)
    objects: list[object] = [{"from": 0} if rank == 0 else None]
    distributed.broadcast_object_list(objects)
    return x.cpu(), y.cpu(), source, objects


def test_send(ranks: Ranks) -> None:
    """Tensors from one rank to another, from any rank, and Python's objects."""
    results = ranks.call(sent)
    assert torch.equal(results[0][0], values(1, 9)) and torch.equal(results[1][0], values(0, 9))
    assert torch.equal(results[1][1], values(0, 3)) and results[1][2] == 0
    assert [objects for *_, objects in results] == [[{"from": 0}]] * 2


def in_flight() -> tuple[Tensor, bool]:
    """A rank's part of test_async."""
    tensors = [mine() + i for i in range(10)]
    works = [distributed.all_reduce(x, async_op=True) for x in tensors]
    futures = [work.get_future().then(lambda future: future.value()[0] * 2) for work in works]
    doubled = torch.stack([future.wait() for future in futures])
    for work in works:
        work.wait()
    return (doubled - 2 * torch.stack(tensors)).cpu(), all(work.is_completed() for work in works)


def test_async(ranks: Ranks) -> None:
    """Many operations at once complete in order, and so do what their futures call."""
    for difference, completed in ranks.call(in_flight):
        assert completed and not difference.any()


def in_group() -> Tensor:
    """A rank's part of test_subgroup: rank 1 alone is in the group."""
    group = distributed.new_group([1])
    x = mine(5)
    if distributed.get_rank() == 1:
        distributed.all_reduce(x, group=group)
        distributed.destroy_process_group(group)
    return x.cpu()


def test_subgroup(ranks: Ranks) -> None:
    """A group of one rank leaves its tensor as it is."""
    for rank, x in enumerate(ranks.call(in_group)):
        assert torch.equal(x, values(rank, 5))


# Memory that ranks of one host share.


def written() -> int:
    """Bytes that this process has written to files and sockets."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"])


def memories() -> int:
    """How many parts of shared memory this process has mapped, and how many it has open."""
    names = Path("/proc/self/maps").read_text().splitlines()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the folder
            names.append(os.readlink(descriptor))
    return sum("/memfd:dlprim" in name for name in names)


def sums_and_moves() -> tuple[list[Tensor], int]:
    """A rank's part of test_shared_memory: results of each type and size, and the bytes that sockets took for them."""
    count = 1 << 21  # of several chunks
    sums = []
    start = written()
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8):
        x = mine(1001, dtype)
        distributed.all_reduce(x)
        sums.append(x)
        if dtype.is_floating_point:
            y = mine(count if dtype == torch.float32 else 77, dtype)
            distributed.all_reduce(y, distributed.ReduceOp.AVG)
            sums.append(y)
    x = mine(count)
    distributed.broadcast(x, 1)
    sums.append(x)
    for dtype in (torch.complex64, torch.bool, torch.int16):
        x = mine(100, dtype).view(4, 25).t()
        distributed.broadcast(x, 1)
        sums.append(x.contiguous())
    lists = [torch.empty(count, device="ocl") for _ in range(distributed.get_world_size())]
    distributed.all_gather(lists, mine(count))
    return [x.cpu() for x in (*sums, *lists)], written() - start


def in_group_for_a_while() -> tuple[int, int, int]:
    """A rank's part of test_shared_memory: parts of shared memory before, in and after a group of its own."""
    before = memories()
    group = distributed.new_group(backend="ocl")
    distributed.all_reduce(mine(), group=group)
    during = memories()
    distributed.destroy_process_group(group)
    return before, during, memories()


@pytest.mark.parametrize("size", [2, 3])
def test_shared_memory(tmp_path: Path, size: int) -> None:
    """Ranks of a host send tensors by memory that they share, with the same bits as by Gloo, and keep none of it."""
    found = []
    for shared in ("1", "0"):
        with Ranks(tmp_path / shared, size, DLPRIM_SHARED=shared) as group:
            group.call(sums_and_moves)  # the first time compiled kernels are written to caches, too
            found.append(group.call(sums_and_moves))
            for before, during, after in group.call(in_group_for_a_while):
                assert before == after
                assert during > before if shared == "1" else during == before == 0
    for (shared_tensors, shared_bytes), (gloo_tensors, gloo_bytes) in zip(*found, strict=True):
        for one, other in zip(shared_tensors, gloo_tensors, strict=True):
            assert one.dtype == other.dtype and torch.equal(one.view(torch.uint8), other.view(torch.uint8))
        assert torch.equal(shared_tensors[-size - 1], values(1, 100, torch.int16).view(4, 25).t())
        assert shared_bytes < 100_000 and gloo_bytes > 8_000_000


def beside_products(products: int) -> tuple[bool, Tensor]:
    """A rank's part of test_overlap: whether products that were enqueued after an operation were done before it was."""
    x = mine()
    busy(1)
    distributed.all_reduce(mine())
    torch.ocl.synchronize()
    work = distributed.all_reduce(x, async_op=True)
    busy(products)
    done = torch.ocl.Event()
    done.record()
    work.wait()
    return done.query(), x.cpu()


def test_overlap(ranks: Ranks) -> None:
    """An operation does not wait for what the program enqueues after it."""

    def overlaps(products: int) -> bool:
        answers = ranks.call(beside_products, products)
        for _, x in answers:
            torch.testing.assert_close(x, values(0) + values(1))
        return not any(done for done, _ in answers)

    assert ever(overlaps)
