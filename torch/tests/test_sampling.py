# SPDX-License-Identifier: MIT
"""Draws of positions by their weights, and random orders."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(dtype: torch.dtype, replacement: bool) -> None:
    """Shares of draws are those of the weights, and a weight of 0 is never drawn."""
    torch.manual_seed(3)
    weights = torch.tensor([[0, 1, 3, 0], [2, 0, 0, 2]], dtype=dtype)
    if replacement:
        drawn = torch.multinomial(weights.ocl(), 2000, True)
    else:
        drawn = torch.multinomial(weights.ocl()[:, None].expand(2, 2000, 4).reshape(4000, 4), 1).view(2, 2000)
    assert drawn.shape == (2, 2000) and drawn.dtype == torch.int64
    shares = torch.stack([torch.bincount(row, minlength=4) for row in drawn.cpu()]) / 2000
    expected = weights.double() / weights.double().sum(1, keepdim=True)
    torch.testing.assert_close(shares.double(), expected, rtol=0, atol=0.05)
    assert (shares[expected == 0] == 0).all()


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_of_what_is_none(replacement: bool) -> None:
    """Weights that are no probabilities are an error of the next wait, and the device works afterwards."""
    good = [0.5, 0.25, 0.25]
    for bad, sentence in (
        ([0.5, -0.25, 0.75], "contains either `inf`, `nan` or element < 0"),
        ([0.5, float("nan"), 0.75], "contains either `inf`, `nan` or element < 0"),
        ([0.5, float("inf"), 0.75], "contains either `inf`, `nan` or element < 0"),
        ([0.0, 0.0, 0.0], r"invalid multinomial distribution \(sum of probabilities <= 0\)"),
    ):
        before = torch.ocl.counters()["waits"]
        drawn = torch.multinomial(torch.tensor([good, bad, good], device="ocl"), 2, replacement)
        assert torch.ocl.counters()["waits"] == before
        with pytest.raises(RuntimeError, match=sentence):
            drawn.cpu()
        torch.ocl.synchronize()
    drawn = torch.multinomial(torch.tensor(good, device="ocl"), 2, replacement)
    assert drawn.cpu().max() <= 2


def test_multinomial_without_replacement() -> None:
    """Each position at most once; what PyTorch refuses, seeds and out=."""
    weights = torch.rand(5, 9, device="ocl")
    torch.manual_seed(4)
    drawn = torch.multinomial(weights, 9)
    assert torch.equal(drawn.sort(1)[0].cpu(), torch.arange(9).expand(5, 9))
    torch.manual_seed(4)
    out = torch.empty(0, dtype=torch.long, device="ocl")
    assert torch.equal(torch.multinomial(weights, 9, out=out), drawn)
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(weights, 10)


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_randperm(count: int) -> None:
    """All positions once, in an order that follows from the seed."""
    torch.manual_seed(5)
    first, second = (torch.randperm(count, device="ocl", dtype=torch.int32) for _ in range(2))
    assert torch.equal(first.sort()[0].cpu(), torch.arange(count, dtype=torch.int32))
    assert count < 2 or not torch.equal(first.cpu(), second.cpu())
    torch.manual_seed(5)
    assert torch.equal(torch.randperm(count, device="ocl", dtype=torch.int32).cpu(), first.cpu())
