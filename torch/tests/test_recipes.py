# SPDX-License-Identifier: MIT
"""What programs do around their layers: choices, matches and sums by index, against the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_kernels import compare
from torch import Tensor
from torch.nn import functional as F


def nucleus(logits: Tensor, words: Tensor) -> Tensor:
    """Logits of a language model without all but the most probable words, less those that were said."""
    logits = logits.masked_fill(logits < logits.topk(20)[0][:, -1:], -torch.inf)
    values, order = logits.sort(descending=True)
    late = values.softmax(-1).cumsum(-1) > 0.9
    late[:, 1:] = late[:, :-1].clone()
    late[:, 0] = False
    logits = logits.masked_fill(late.scatter(1, order, late), -torch.inf)
    said = logits.gather(1, words)
    return logits.scatter(1, words, torch.where(said < 0, said * 1.2, said / 1.2)).softmax(-1)


def beams(scores: Tensor, states: Tensor) -> tuple[Tensor, ...]:
    """The best words of all beams, and the states that go on."""
    values, flat = scores.log_softmax(-1).view(2, -1).topk(3, 1)
    chosen = torch.div(flat, scores.shape[-1], rounding_mode="floor")
    rows = (chosen + torch.arange(2, device=scores.device)[:, None] * 3).view(-1)
    return values, flat % scores.shape[-1], states.index_select(0, rows)


def experts(x: Tensor, gate: Tensor) -> tuple[Tensor, ...]:
    """Each row to two of four experts."""
    weights, chosen = gate.softmax(-1).topk(2, -1)
    out = torch.zeros_like(x)
    for k in range(4):
        row, rank = torch.where(chosen == k)
        out = out.index_add(0, row, x[row] * (k + 1) * weights[row, rank, None])
    return out, torch.bincount(chosen.flatten(), minlength=5)


def graph_attention(scores: Tensor, values: Tensor, edges: Tensor) -> Tensor:
    """A softmax over the edges into each node."""
    most = torch.full((10,), -1e9, device=scores.device).scatter_reduce(0, edges[1], scores.detach(), "amax")
    shares = (scores - most[edges[1]]).exp()
    total = torch.zeros(10, device=scores.device).scatter_add(0, edges[1], shares)
    weighted = values[edges[0]] * (shares / total[edges[1]])[:, None]
    return torch.zeros_like(values).index_add(0, edges[1], weighted)


def suppressed(corners: Tensor, scores: Tensor) -> Tensor:
    """Which boxes are left when all that overlap with better ones are dropped."""
    boxes = torch.cat([corners, corners + 10], 1)
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        best, rest = order[0], order[1:]
        kept.append(best)
        low = torch.maximum(boxes[best, :2], boxes[rest, :2])
        high = torch.minimum(boxes[best, 2:], boxes[rest, 2:])
        both = (high - low).clamp(min=0).prod(1)
        order = rest[both / (200 - both) <= 0.3]
    return torch.stack(kept)


def matched(overlaps: Tensor) -> tuple[Tensor, ...]:
    """Which box belongs to which object, as R-CNN matches them."""
    values, best = overlaps.max(0)
    best[values < 0.3] = -1
    best[(values >= 0.3) & (values < 0.7)] = -2
    of_object, _ = overlaps.max(1)
    pairs = torch.where(overlaps == of_object[:, None])
    best[pairs[1]] = pairs[0]
    return best, torch.where(best >= 0)[0], torch.unique(best, return_counts=True)[1]


def codebook(x: Tensor, codes: Tensor) -> tuple[Tensor, ...]:
    """The nearest code of each row, with its loss, and how often each code is used."""
    place = (x.pow(2).sum(1, keepdim=True) + codes.pow(2).sum(1) - 2 * x @ codes.t()).argmin(1)
    used = torch.zeros(len(x), len(codes), device=x.device).scatter_(1, place[:, None], 1).mean(0)
    return F.embedding(place, codes), used


def confusion(labels: Tensor, logits: Tensor) -> tuple[Tensor, ...]:
    """Counts of classes by class, and the overlap of a segmentation with its labels."""
    counts = torch.bincount((labels * 5 + logits.argmax(1)).flatten(), minlength=25).view(5, 5)
    right = F.one_hot(labels, 5).permute(0, 3, 1, 2) * logits.softmax(1)
    return counts, right.sum((0, 2, 3)), F.cross_entropy(logits, labels, reduction="none").flatten().topk(9)[0]


RECIPES: list[tuple[Callable[..., object], tuple[Tensor, ...]]] = [
    (nucleus, (torch.randn(3, 50), torch.randint(0, 50, (3, 4)))),
    (beams, (torch.randn(2, 3, 20), torch.randn(6, 7))),
    (experts, (torch.randn(20, 8), torch.randn(20, 4))),
    (graph_attention, (torch.randn(40), torch.randn(10, 3), torch.randint(0, 10, (2, 40)))),
    (suppressed, (torch.rand(30, 2) * 50, torch.rand(30))),
    (matched, (torch.rand(5, 30),)),
    (codebook, (torch.randn(30, 8), torch.randn(16, 8))),
    (confusion, (torch.randint(0, 5, (2, 8, 8)), torch.randn(2, 5, 8, 8))),
]


@pytest.mark.parametrize(("recipe", "tensors"), RECIPES, ids=lambda value: getattr(value, "__name__", ""))
def test_recipe(recipe: Callable[..., object], tensors: tuple[Tensor, ...]) -> None:
    """Results and gradients."""
    if recipe is matched:
        compare(lambda x: recipe(x.detach()), *tensors)
    else:
        compare(recipe, *tensors)
