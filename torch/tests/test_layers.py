# SPDX-License-Identifier: MIT
"""Normalisation, resizing, padding, windows, attention and margin losses against the CPU, with gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from programs import run
from test_kernels import compare
from torch import nn
from torch.nn import functional as F


@pytest.mark.parametrize("affine", ["both", "weight", "none"])
@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 1), (2, 3, 4, 6)])
def test_layer_norm(shape: tuple[int, ...], affine: str) -> None:
    """Over the last dimension and over all, of views, and without elements."""
    x = torch.randn(shape) * 2 + 1
    for size in (shape[-1:], shape):
        params = {"both": 2, "weight": 1, "none": 0}[affine]
        operands = [torch.randn(size) for _ in range(params)]
        compare(lambda x, *p, size=size: F.layer_norm(x, size, *p), x, *operands)
    # Of two nearly equal numbers the gradient is large, and so is its rounding, where eps is small.
    compare(lambda x: F.layer_norm(x.transpose(0, -1), x.shape[:1], eps=0.1), x)
    compare(lambda x: F.layer_norm(x[:0], shape[1:] or (0,)), x)


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (3, 4, 5, 6), (2, 4, 3, 2, 5)])
def test_group_norm(shape: tuple[int, ...]) -> None:
    """With and without weights, of views, and of single instances."""
    x, w, b = torch.randn(shape) * 2 + 1, torch.randn(shape[1]), torch.randn(shape[1])
    compare(lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3), x, w, b)
    compare(lambda x, w: F.group_norm(x, shape[1], w), x, w)
    compare(lambda x: F.group_norm(x[:, ::2], 1), x)
    if x.dim() > 2:
        compare(lambda x: F.instance_norm(x.transpose(2, -1)), x)


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 4, 6)])
def test_rms_norm(shape: tuple[int, ...]) -> None:
    """With and without a weight, over one dimension and all, of views, and without elements."""
    x, w = torch.randn(shape) * 2 + 1, torch.randn(6)
    compare(lambda x, w: F.rms_norm(x, (6,), w, 1e-3), x, w)
    compare(lambda x: F.rms_norm(x, shape), x)
    compare(lambda x: F.rms_norm(x[..., ::2], (3,)), x)
    assert F.rms_norm(x[..., :0].ocl(), (0,)).shape == (*shape[:-1], 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_other_types(dtype: torch.dtype) -> None:
    """Also with weights in float, as autocast leaves them."""
    x, w = torch.randn(4, 6, 5).to(dtype), torch.randn(5).to(dtype)
    compare(lambda x, w: F.layer_norm(x, (5,), w, w), x, w, tolerance=3e-2)
    compare(lambda x, w: F.rms_norm(x, (5,), w), x, w, tolerance=3e-2)
    compare(lambda x, w: F.group_norm(x, 3, w[:1].expand(6), w[1:2].expand(6)), x, w, tolerance=6e-2)
    if dtype != torch.float64:
        made = F.layer_norm(x.ocl(), (5,), w.float().ocl(), w.float().ocl())
        torch.testing.assert_close(made.cpu(), F.layer_norm(x.float(), (5,), w.float(), w.float()).to(dtype))


def test_batch_norm_with_update() -> None:
    """The variants that newer exporters use, and out=."""
    x, w, b = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3)

    def update(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, var = torch.zeros(3, device=x.device), torch.ones(3, device=x.device)
        return (*torch.ops.aten._batch_norm_with_update(x, w, b, mean, var, 0.3, 1e-3)[:3], mean, var)

    compare(update, x, w, b)
    outs = [torch.empty(0, device="ocl") for _ in range(3)]
    torch.native_batch_norm(x.ocl(), w.ocl(), b.ocl(), None, None, True, 0.1, 1e-5, out=outs)
    for made, expected in zip(outs, torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5), strict=True):
        torch.testing.assert_close(made.cpu(), expected)


@pytest.mark.parametrize("size", [(7, 9), (3, 2), (5, 6), (1, 1)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_interpolate(mode: str, size: tuple[int, int]) -> None:
    """Larger and smaller images, of views, by size and by scale, with antialiasing and aligned corners."""
    x = torch.randn(2, 3, 5, 6)
    compare(lambda x: F.interpolate(x, size, mode=mode), x)
    compare(lambda x: F.interpolate(x.transpose(2, 3)[:, 1:], size, mode=mode), x)
    compare(lambda x: F.interpolate(x, scale_factor=(1.7, 0.6), mode=mode), x)
    if mode.startswith("bi"):
        compare(lambda x: F.interpolate(x, size, mode=mode, align_corners=True), x)
        compare(lambda x: F.interpolate(x, size, mode=mode, antialias=True), x)
    with pytest.raises(RuntimeError, match="greater than 0"):
        F.interpolate(x.ocl(), (0, 2), mode=mode)


def test_interpolate_lines_and_volumes() -> None:
    """Of one and three dimensions, and of other types."""
    x, v = torch.randn(2, 3, 7), torch.randn(2, 3, 3, 4, 5)
    for mode in ("nearest", "nearest-exact", "linear"):
        compare(lambda x, mode=mode: F.interpolate(x, 11, mode=mode), x)
    for mode in ("nearest", "nearest-exact", "trilinear"):
        compare(lambda v, mode=mode: F.interpolate(v, (5, 2, 7), mode=mode), v)
    compare(lambda x: F.interpolate(x, scale_factor=2.0), torch.randint(0, 255, (2, 3, 4, 5)).byte())
    bytes_ = torch.randint(0, 255, (2, 3, 4, 5)).byte()
    made = F.interpolate(bytes_.ocl(), scale_factor=2.0, mode="bilinear").cpu()
    assert (made.int() - F.interpolate(bytes_, scale_factor=2.0, mode="bilinear").int()).abs().max() <= 1
    compare(lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), torch.randn(2, 3, 4, 5).double())
    compare(lambda x: F.interpolate(x, (7, 3), mode="bilinear"), torch.randn(2, 3, 4, 5).half(), tolerance=4e-3)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding_mode: str) -> None:
    """Places inside and outside of images; gradients of images and of places."""
    x, grid = torch.randn(2, 3, 5, 6), torch.rand(2, 4, 7, 2) * 3 - 1.5
    for corners in (False, True):
        compare(lambda x, g, c=corners: F.grid_sample(x, g, mode, padding_mode, c), x, grid, tolerance=2e-4)
    if mode != "bicubic":
        volume, places = torch.randn(2, 3, 3, 4, 5), torch.rand(2, 2, 3, 4, 3) * 3 - 1.5
        for corners in (False, True):
            compare(lambda x, g, c=corners: F.grid_sample(x, g, mode, padding_mode, c), volume, places, tolerance=2e-4)
        compare(lambda x, g: F.grid_sample(x, g[:, :0], mode, padding_mode, False), volume, places)
    compare(lambda g: F.grid_sample(torch.ones(2, 1, 4, 4, device=g.device), g, mode, padding_mode, False), grid)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_pad(mode: str) -> None:
    """Of one to three dimensions, of views, with cropping, and of other types."""
    x, v = torch.randn(2, 3, 6, 7), torch.randn(2, 3, 4, 5, 6)
    compare(lambda x: F.pad(x, (1, 2, 3, 0), mode), x)
    compare(lambda x: F.pad(x[0].transpose(1, 2), (1, 2, 3, 0), mode), x)
    compare(lambda x: F.pad(x[0], (3, 2), mode), x)
    compare(lambda v: F.pad(v, (1, 2, 3, 0, 0, 1), mode), v)
    compare(lambda x: F.pad(x, (-1, 2, 3, -2), mode), x)
    compare(lambda x: F.pad(x, (1, 2, 3, 0), mode), x.half(), tolerance=4e-3)
    if mode != "circular":
        compare(lambda x: F.pad(x, (1, 2), mode), torch.randint(0, 9, (2, 3, 4)))
    if mode == "replicate":
        compare(lambda x: F.pad(x, (-7, 4, 1, -3), mode), x)
    if mode == "reflect":
        with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
            F.pad(x.ocl(), (7, 1, 1, 1), mode)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)},
        {"kernel_size": 3, "padding": 1},
    ],
)
def test_unfold_and_fold(options: dict[str, Any]) -> None:
    """Windows that overlap or not, of batches and single images."""
    x = torch.randn(2, 3, 6, 8)
    compare(lambda x: F.unfold(x, **options), x)
    compare(lambda x: F.unfold(x[1].transpose(1, 2), **options), x)
    columns = F.unfold(x, **options)
    compare(lambda c: F.fold(c, (6, 8), **options), columns)
    compare(lambda c: F.fold(c[0], (6, 8), **options), columns)
    compare(lambda x: F.unfold(x[:0], **options), x)


def test_unfold_backward() -> None:
    """The gradient of a view of windows."""
    x = torch.randn(3, 9, 4)
    for size, step in ((3, 1), (2, 2), (2, 4)):
        compare(lambda x, size=size, step=step: x.unfold(1, size, step) * 2, x)


def test_max_unpool() -> None:
    """Maxima go back to their places."""
    for rank, pool, unpool in ((2, F.max_pool2d, F.max_unpool2d), (3, F.max_pool3d, F.max_unpool3d)):
        x = torch.randn(2, 3, *[6] * rank)
        y, places = pool(x, 2, return_indices=True)
        for few in (slice(None), slice(0, 1)):
            made = unpool(y[few].ocl(), places[few].ocl(), 2)
            torch.testing.assert_close(made.cpu(), unpool(y[few], places[few], 2))
    with pytest.raises(RuntimeError, match="same as that of the input"):
        F.max_unpool2d(torch.ones(1, 1, 2, 2).ocl(), torch.zeros(1, 1, 2, 1, dtype=torch.int64).ocl(), 2)
    made = F.max_unpool2d(torch.ones(1, 1, 1, 1).ocl(), torch.full((1, 1, 1, 1), 99).ocl(), 2)
    with pytest.raises(IndexError):
        made.cpu()


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_cdist(p: float) -> None:
    """Distances by all norms, of batches and without elements."""
    x, y = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    mode = "donot_use_mm_for_euclid_dist"
    compare(lambda x, y: torch.cdist(x, y, p, compute_mode=mode), x, y)
    compare(lambda x, y: torch.cdist(x, y[0].t()[:3, :3].t(), p, compute_mode=mode), x, y)
    compare(lambda x, y: torch.cdist(x[:, :0], y, p), x, y)
    compare(lambda x: F.pdist(x[0].t(), p), x)
    compare(lambda x: F.pdist(x[0, :1], p), x)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p: int, reduction: str) -> None:
    """With weights and without, and of one row."""
    x, t, w = torch.randn(5, 4), torch.randint(0, 4, (5,)), torch.rand(4)
    compare(lambda x, t: F.multi_margin_loss(x, t, p, 0.7, reduction=reduction), x, t)
    compare(lambda x, t, w: F.multi_margin_loss(x, t, p, 0.7, w.detach(), reduction=reduction), x, t, w)
    compare(lambda x: F.multi_margin_loss(x[0], torch.tensor(2, device=x.device), reduction=reduction), x)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_multilabel_margin_loss(reduction: str) -> None:
    """Labels end before the first -1."""
    t = torch.tensor([[2, 0, -1, 1], [3, -1, 0, 0], [-1, 1, 2, 0], [0, 1, 2, 3], [1, 1, -1, -1]])
    x = torch.randn(5, 4)
    compare(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), x, t)
    compare(lambda x, t: F.multilabel_margin_loss(x[1], t[1], reduction=reduction), x, t)


def test_margin_label_out_of_range() -> None:
    """Raised when the program next waits."""
    loss = F.multi_margin_loss(torch.randn(4, 5).ocl(), torch.tensor([0, 1, 9, 2]).ocl())
    with pytest.raises(IndexError):
        loss.item()


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool) -> None:
    """The function, with masks of floats and of bool."""
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.rand(5, 6) > 0.3
    mask[:, 0] = True
    for given in (mask, mask.float()) if masked else (None,):
        own = lambda x, given=given: None if given is None else given.to(x.device)  # noqa: E731
        compare(lambda q, k, v, own=own: F.scaled_dot_product_attention(q, k, v, own(q)), q, k, v)
    compare(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    compare(lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True), q, k, v)


# Attention beside the CPU's, with gradients; and that it is one operator, without PyTorch's products.
FUSED = """
import torch, dlprim_torch
from torch.nn import functional as F

def compare(function, *tensors, tolerance=1e-5):
    results = []
    for device in ("cpu", "ocl"):
        operands = [x.to(device, copy=True).requires_grad_() for x in tensors]
        y = function(*operands)
        y.backward(torch.ones_like(y) + torch.arange(y.shape[-1], device=device))
        results.append([y, *(x.grad for x in operands)])
    for wanted, found in zip(*results):
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=tolerance)

torch.manual_seed(1)
q, k, v = torch.randn(2, 6, 70, 8), torch.randn(2, 6, 50, 8), torch.randn(2, 6, 50, 12)
attention = F.scaled_dot_product_attention
compare(attention, q, k, v)
compare(lambda q, k, v: attention(q, k, v, is_causal=True, scale=0.3), q, k, v)
compare(lambda q, k, v: attention(q, k[:, :2], v[:, :2], enable_gqa=True), q, k, v)
turned = [x.transpose(1, 2) for x in (q, k, v)]
compare(lambda *given: attention(*(x.transpose(1, 2) for x in given)), *turned)
# Heads in the rows of one projection: the result, and the gradients, are put down in the same way.
packed = torch.randn(2, 60, 3, 6, 8)
compare(lambda x: attention(*x.transpose(1, 3).unbind(2), is_causal=True).transpose(1, 2), packed)
heads = [x.requires_grad_() for x in packed.ocl().transpose(1, 3).detach().unbind(2)]
y = attention(*heads)
made = [y, *torch.autograd.grad(y, heads, torch.ones_like(y))]
print("in rows:", all(x.transpose(1, 2).is_contiguous() for x in made))
# In any order of the operands, of which the last is that of nn.MultiheadAttention: positions, batch, heads.
for order in (0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3):
    place = [order.index(dim) for dim in range(4)]
    heads = [torch.randn([x.shape[dim] for dim in order]).ocl().permute(place).requires_grad_() for x in (q, q, q)]
    y = attention(*heads)
    made = [y, *torch.autograd.grad(y, heads, torch.ones_like(y))]
    print("in that order:", all(x.stride() == heads[0].stride() for x in made))
compare(lambda q, k, v: attention(q.half(), k.half(), v.half()).float(), q, k, v, tolerance=3e-2)
mask = torch.rand(70, 50) > 0.5
mask[3] = False  # a row without positions is 0
compare(lambda q, k, v: attention(q, k, v, mask.to(q.device)), q, k, v)
def dropped(q, k, v):
    torch.ocl.manual_seed(3)
    return attention(q, k, v, is_causal=True, dropout_p=0.4)

# The identity as values gives the weights, and so what was dropped.
seen = dropped(q.ocl(), k.ocl(), torch.eye(50).expand(2, 6, 50, 50).ocl()).cpu()
whole = attention(q, k, torch.eye(50).expand(2, 6, 50, 50), is_causal=True)
kept = torch.where(seen != 0, 1 / 0.6, 0.0)
torch.testing.assert_close(seen, whole * kept, rtol=1e-4, atol=1e-6)
assert 0.35 < (seen[..., -20:, :] == 0).float().mean() < 0.45

def dropped_on_both(q, k, v):
    if q.device.type == "ocl":
        return dropped(q, k, v)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(70, 50).tril() == 0, -torch.inf)
    return (scores.softmax(-1) * kept) @ v

compare(dropped_on_both, q, k, v)
with torch.profiler.profile() as profile:
    attention(q.ocl(), k.ocl(), v.ocl())
print([event.key for event in profile.key_averages() if "attention" in event.key])
layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
x, hidden = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
with torch.no_grad():
    wanted = layer(x, src_key_padding_mask=hidden)
    with torch.profiler.profile() as profile:
        found = layer.to("ocl")(x.ocl(), src_key_padding_mask=hidden.ocl())
torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
print([event.key for event in profile.key_averages() if "fused_attention" in event.key])
print(torch.ocl.fallbacks())
"""


def test_attention_of_gpus() -> None:
    """On a GPU it is one operator of dlprim's; on CPUs PyTorch's products keep what backward needs."""
    printed = run(FUSED, DLPRIM_TRAITS="wide_vectors=0")
    assert printed.count("_scaled_dot_product_fused_attention_overrideable") == 2 and "{}" in printed
    assert "in rows: True" in printed and printed.count("in that order: True") == 3
    assert "_scaled_dot_product_attention_math" in run(FUSED)


MODULES = {
    "attention": lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    "layer": lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
    "norm_first": lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=True),
    "encoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, enable_nested_tensor=False
    ),
    "decoder": lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", list(MODULES))
def test_transformers(name: str, training: bool) -> None:
    """Modules of transformers, in training and by the short way that they take in inference."""
    torch.manual_seed(3)
    module = MODULES[name]().train(training)
    x = torch.randn(2, 5, 8)
    hidden = torch.zeros(2, 5, dtype=torch.bool)
    hidden[1, 3:] = True
    masks = [{}]
    if name != "decoder":
        masks += [{"key_padding_mask" if name == "attention" else "src_key_padding_mask": hidden}]
        causal = nn.Transformer.generate_square_subsequent_mask(5)
        masks += [{"attn_mask" if name == "attention" else "src_mask" if name != "encoder" else "mask": causal}]
    inputs = {"attention": 3, "decoder": 2}.get(name, 1)
    for mask in masks:
        found = []
        for device in ("cpu", "ocl"):
            own = copy.deepcopy(module).to(device)
            with torch.set_grad_enabled(training):
                result = own(*[x.to(device)] * inputs, **{key: value.to(device) for key, value in mask.items()})
            results = list(result) if isinstance(result, tuple) else [result]
            if training:
                results[0].square().sum().backward()
                results += [p.grad for p in own.parameters()]
            found.append(results)
        for expected, actual in zip(*found, strict=True):
            torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-4)


def test_encoder_with_padding() -> None:
    """In inference an encoder would make nested tensors of its input, which this device does not have."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, hidden = torch.randn(2, 5, 8), torch.zeros(2, 5, dtype=torch.bool)
    hidden[1, 3:] = True
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=hidden)
        made = encoder.to("ocl")(x.ocl(), src_key_padding_mask=hidden.ocl()).cpu()
    torch.testing.assert_close(made[~hidden], expected[~hidden], rtol=1e-4, atol=1e-4)


def test_convolution_in_training() -> None:
    """Where gradients are wanted, a convolution rounds less: CPUs take smaller tiles of Winograd's algorithm."""
    if torch.ocl.get_device_properties().kind != "cpu":
        pytest.skip("GPUs choose their tiles by time alone")
    x, weight = torch.randn(4, 64, 32, 32), torch.randn(64, 64, 3, 3)
    exact = torch.nn.functional.conv2d(x.double(), weight.double(), padding=1)

    def error(wants: bool) -> float:
        made = torch.nn.functional.conv2d(x.ocl(), weight.ocl().requires_grad_(wants), padding=1)
        return float((made.detach().cpu() - exact).norm() / exact.norm())

    training, inference = error(True), error(False)
    assert training < 0.8 * inference < 1e-6
    with torch.no_grad():
        assert error(True) == inference
