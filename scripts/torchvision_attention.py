# SPDX-License-Identifier: MIT
"""How torchvision_operators.py translates attention: of vision transformers, of shifted windows (Swin), of maxvit_t.

A head's queries, keys and values come from one product with all rows, [-1, C] -> [-1, 3 C]. One Transpose brings them, and
windows with them, to [3, ..., heads, positions, C / heads]: a product works on each row alone, so that windows may be made
behind it. Attention adds biases and masks. Positions are known when the network is made, so tables are Pointwise nodes
of index(), which are computed once and need no weights: the file of JSON says all.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torchvision_models import torchvision

maxvit, swin_transformer = torchvision.models.maxvit, torchvision.models.swin_transformer
Node = torch.fx.Node
LOG_2 = math.log(2)


def heads_of(exporter: Any, name: str, projected: str, groups: list[int], positions: list[int], order: list[int], heads: int,
             features: int) -> list[str]:
    """Queries, keys and values, [-1, *groups, heads, positions, features], of the rows [-1, 3 C] of a product. `order`
    permutes [-1, *sizes], sizes being those of groups and positions as the rows have them."""
    sizes = [-1, *groups]
    split = exporter.emit(None, "Reshape", [projected], {"dims": [*sizes, 3, heads, features]}, name=f"{name}.heads")
    at = len(sizes)
    outer = len(sizes) - len(positions)
    dims = [at, *order[:outer], at + 1, *order[outer:], at + 2]
    turned = exporter.emit(None, "Transpose", [split], {"dims": dims}, name=f"{name}.by_head")
    shape = [sizes[d] for d in order[:outer]]
    shape = [-1] + ([math.prod(shape[1:])] if len(shape) > 1 else [])
    parts = []
    for i, part in enumerate(("queries", "keys", "values")):
        one = exporter.emit(None, "Slice", [turned], {"dim": 0, "begin": i, "end": i + 1}, name=f"{name}.{part}_slice")
        dims = [*shape, heads, math.prod(positions), features]
        parts.append(exporter.emit(None, "Reshape", [one], {"dims": dims}, name=f"{name}.{part}"))
    return parts


def product(exporter: Any, name: str, rows: str, weight: str, bias: str | None) -> str:
    """The InnerProduct of rows with parameters of the state_dict."""
    outputs, inputs = exporter.model.state_dict()[weight].shape
    return exporter.emit(None, "InnerProduct", [rows], {"inputs": inputs, "outputs": outputs, "bias": bias is not None},
                         [weight] + ([bias] if bias else []), name=name)


def attend(exporter: Any, name: str, parts: list[str], scale: float | None, dropout: float) -> str:
    options: dict[str, float] = {}
    if scale is not None:
        options["scale"] = scale
    if dropout > 0 and exporter.keep_dropout:
        options["dropout_p"] = dropout
    return exporter.emit(None, "Attention", parts, options, name=f"{name}.attention")


# Vision transformers

def multihead_attention(exporter: Any, node: Node, m: nn.MultiheadAttention) -> list[str | None]:
    if len({*node.args[:3]}) != 1 or not m.batch_first or m.in_proj_weight is None or m.bias_k is not None or m.add_zero_attn:
        raise NotImplementedError(f"attention of several tensors, or with further keys, at {node.target}")
    x, at = node.args[0], str(node.target)
    positions, features = exporter.values[x].shape[1:]
    biased = m.in_proj_bias is not None
    projected = product(exporter, f"{at}.in_proj", exporter.as_rows(x), f"{at}.in_proj_weight", f"{at}.in_proj_bias" if biased else None)
    parts = heads_of(exporter, at, projected, [positions], [positions], [0, 1], m.num_heads, features // m.num_heads)
    y = attend(exporter, at, parts, None, m.dropout)
    back = exporter.emit(None, "Transpose", [y], {"dims": [0, 2, 1, 3]}, name=f"{at}.by_position")
    rows = exporter.emit(None, "Reshape", [back], {"dims": [-1, features]}, name=f"{at}.rows")
    y = product(exporter, f"{at}.out_proj", rows, f"{at}.out_proj.weight", f"{at}.out_proj.bias" if biased else None)
    return [exporter.of_rows(y), None]


# Biases by relative position

def relative_bias(exporter: Any, name: str, table: str, window: list[int]) -> str:
    """The table [(2h - 1)(2w - 1), heads] by the relative positions in a window of h x w: [heads, h w, h w]. A product with
    a table of ones and zeros, whose gradient is a product, too; sums of zeros and one value are exact."""
    h, w = window
    rows, pairs = (2 * h - 1) * (2 * w - 1), (h * w) ** 2

    def one_hot() -> str:
        # Of flat numbers: index(1) is from * h w + to; halves keep quotients off the integers.
        code = (f"a = floor((index(1) + 0.5) / {h * w}); b = index(1) - a * {h * w}; "
                f"p = floor((a + 0.5) / {w}); q = floor((b + 0.5) / {w}); "
                f"r = (p - q + {h - 1}) * {2 * w - 1} + (a - p * {w}) - (b - q * {w}) + {w - 1}; y0 = index(0) == r")
        return exporter.pointwise(f"relative_positions_{h}x{w}", code, [], shape=[rows, pairs], dtypes=["float"])

    selected = exporter.emit(None, "MatMul", [table, exporter.once(("one_hot", h, w), one_hot)], {"transpose_a": True},
                             name=f"{name}.pairs")
    return exporter.emit(None, "Reshape", [selected], {"dims": [-1, h * w, h * w]}, name=name)


def given_sizes(argument: Any) -> list[int]:
    return [int(size) for size in argument]


def get_relative_position_bias(exporter: Any, node: Node) -> str:
    table, window = node.args[0], given_sizes(node.args[2])
    name = exporter.tensor(table)
    made = relative_bias(exporter, node.name, name, window)
    heads, pairs = exporter.values[table].shape[-1], math.prod(window)
    return exporter.emit(None, "Reshape", [made], {"dims": [1, heads, pairs, pairs]}, name=f"{node.name}.all")


def coordinates(exporter: Any, shape: list[int]) -> str:
    """Swin V2's relative_coords_table [1, 2h - 1, 2w - 1, 2]: distances from -8 to 8, by their logarithm."""
    _, rows, columns, _ = shape
    code = (f"d = index(3) == 0 ? (index(1) - {rows // 2}) / {rows // 2} : (index(2) - {columns // 2}) / {columns // 2}; "
            f"y0 = sign(d) * log(abs(d) * 8 + 1) / {3 * LOG_2!r}")
    return exporter.once(("coordinates", *shape), lambda: exporter.pointwise(f"relative_coordinates_{rows}x{columns}", code, [],
                                                                             shape=list(shape), dtypes=["float"]))


# Windows

def window_mask(exporter: Any, sizes: tuple[int, int], window: list[int], shift: list[int]) -> str:
    """[windows, 1, positions, positions]: -100 between positions that are neighbours only because the image was rolled."""
    (height, width), (h, w) = sizes, window
    across = width // w

    def region(place: str, size: int, side: int, moved: int) -> str:
        return f"({place} >= {size - side}) + ({place} >= {size - moved})" if moved else "0"

    def at(position: str, name: str) -> str:
        return (f"{name}p = floor(({position} + 0.5) / {w}); "
                f"{name} = 3 * ({region(f'(v * {h} + {name}p)', height, h, shift[0])}) + "
                f"{region(f'((index(0) - v * {across}) * {w} + {position} - {name}p * {w})', width, w, shift[1])}; ")

    code = f"v = floor((index(0) + 0.5) / {across}); " + at("index(2)", "a") + at("index(3)", "b") + "y0 = a == b ? 0 : -100"
    shape = [height // h * across, 1, h * w, h * w]
    name = f"window_mask_{height}x{width}_{h}x{w}_{shift[0]}x{shift[1]}"
    return exporter.once(("mask", name), lambda: exporter.pointwise(name, code, [], shape=shape, dtypes=["float"]))


def roll(exporter: Any, name: str, x: str, shift: list[int]) -> str:
    """[N, H, W, C] moved up and left by `shift`, what leaves coming in again: circular padding that crops as much."""
    down, right = shift
    return exporter.emit(None, "Pad", [x], {"pads": [0, 0, -right, right, -down, down], "mode": "circular"}, name=name)


def cosine(exporter: Any, name: str, parts: list[str], logit_scale: str) -> list[str]:
    """Queries and keys of length 1, queries times a head's scale, of which 100 is the most."""
    made = []
    for x, part in zip(parts, ("queries", "keys")):
        square = exporter.pointwise(f"{name}.{part}_square", "y0 = sum[-1](x0 * x0)", [x])
        code = "y0 = x0 / max(sqrt(x1), p0)" + (" * exp(min(x2, p1))" if part == "queries" else "")
        queries = [logit_scale] if part == "queries" else []
        made.append(exporter.pointwise(f"{name}.unit_{part}", code, [x, square, *queries],
                                       scalars=[1e-12, *([math.log(100)] if queries else [])]))
    return [*made, parts[2]]


def biased_product(exporter: Any, name: str, rows: str, weight: str, bias: str, without_keys: bool) -> str:
    """The product that makes queries, keys and values; `without_keys`: keys get no bias (Swin V2)."""
    if not without_keys:
        return product(exporter, name, rows, weight, bias)
    size = exporter.model.state_dict()[bias].shape[0]
    y = product(exporter, f"{name}.product", rows, weight, None)
    code = f"y0 = x0 + (index(1) >= {size // 3} && index(1) < {2 * size // 3} ? 0 : x1)"
    return exporter.pointwise(name, code, [y, exporter.parameter(bias)])


ARGUMENTS = ("input", "qkv_weight", "proj_weight", "relative_position_bias", "window_size", "num_heads", "shift_size",
             "attention_dropout", "dropout", "qkv_bias", "proj_bias", "logit_scale", "training")


def shifted_window_attention(exporter: Any, node: Node) -> str:
    given: dict[str, Any] = dict(zip(ARGUMENTS, node.args)) | dict(node.kwargs)
    x, (h, w), heads = given["input"], given["window_size"], given["num_heads"]
    at = given["qkv_weight"].target.removesuffix(".qkv.weight")
    _, height, width, features = exporter.values[x].shape
    down, right = -height % h, -width % w
    sizes = (height + down, width + right)
    shift = [0 if side >= size else s for s, side, size in zip(given["shift_size"], (h, w), sizes)]
    moves = sum(shift) > 0
    exporter.tensor(x) if down or right or moves else exporter.as_rows(x)
    name = exporter.tensors.get(x)
    if down or right:
        name = exporter.emit(None, "Pad", [name], {"pads": [0, 0, 0, right, 0, down]}, name=f"{at}.padded")
    if moves:
        name = roll(exporter, f"{at}.rolled", name, shift)
    changed = down or right or moves
    rows = exporter.emit(None, "Reshape", [name], {"dims": [-1, features]}, name=f"{at}.rows") if changed else exporter.as_rows(x)

    scale = given.get("logit_scale")
    qkv = biased_product(exporter, f"{at}.qkv", rows, f"{at}.qkv.weight", f"{at}.qkv.bias", scale is not None)
    down_windows, across = sizes[0] // h, sizes[1] // w
    parts = heads_of(exporter, at, qkv, [down_windows, h, across, w], [h, w], [0, 1, 3, 2, 4], heads, features // heads)
    if scale is not None:
        parts = cosine(exporter, at, parts, exporter.tensor(scale))
    bias = exporter.tensor(given["relative_position_bias"])
    if moves:
        bias = exporter.emit(None, "Elementwise", [bias, window_mask(exporter, sizes, [h, w], shift)], {"operation": "sum"},
                             name=f"{at}.mask")
    y = attend(exporter, at, [*parts, bias], None if scale is None else 1.0, given["attention_dropout"])

    dims = [-1, down_windows, across, heads, h, w, features // heads]
    y = exporter.emit(None, "Reshape", [y], {"dims": dims}, name=f"{at}.windows")
    y = exporter.emit(None, "Transpose", [y], {"dims": [0, 1, 4, 2, 5, 3, 6]}, name=f"{at}.by_position")
    y = exporter.emit(None, "Reshape", [y], {"dims": [-1, features]}, name=f"{at}.positions")
    y = product(exporter, f"{at}.proj", y, f"{at}.proj.weight", f"{at}.proj.bias")
    if given["dropout"] > 0 and exporter.keep_dropout:
        y = exporter.emit(None, "Dropout", [y], {"p": given["dropout"]}, name=f"{at}.dropout")
    if not changed:
        return exporter.of_rows(y)
    y = exporter.emit(None, "Reshape", [y], {"dims": [-1, *sizes, features]}, name=f"{at}.image")
    if moves:
        y = roll(exporter, f"{at}.rolled_back", y, [-s for s in shift])
    if down or right:
        y = exporter.emit(None, "Pad", [y], {"pads": [0, 0, 0, -right, 0, -down]}, name=f"{at}.cropped")
    return y


def patch_merging_pad(exporter: Any, node: Node) -> str:
    """[N, H, W, C] -> [N, H / 2, W / 2, 4 C]: squares of two by two, by columns."""
    x = node.args[0]
    _, height, width, features = exporter.values[x].shape
    name = exporter.tensor(x)
    if height % 2 or width % 2:
        name = exporter.emit(None, "Pad", [name], {"pads": [0, 0, 0, width % 2, 0, height % 2]}, name=f"{node.name}.padded")
    rows, columns = (height + 1) // 2, (width + 1) // 2
    name = exporter.emit(None, "Reshape", [name], {"dims": [-1, rows, 2, columns, 2, features]}, name=f"{node.name}.squares")
    name = exporter.emit(None, "Transpose", [name], {"dims": [0, 1, 3, 4, 2, 5]}, name=f"{node.name}.by_square")
    return exporter.of_rows(exporter.emit(None, "Reshape", [name], {"dims": [-1, 4 * features]}, name=node.name))


# maxvit_t

def relative_attention(exporter: Any, node: Node, m: maxvit.RelativePositionalMultiHeadAttention) -> str:
    """[B, G, P, D]: attention within each of G groups of P positions."""
    x, at = node.args[0], str(node.target)
    _, groups, positions, features = exporter.values[x].shape
    qkv = product(exporter, f"{at}.to_qkv", exporter.as_rows(x), f"{at}.to_qkv.weight", f"{at}.to_qkv.bias")
    parts = heads_of(exporter, at, qkv, [groups, positions], [positions], [0, 1, 2], m.n_heads, m.head_dim)
    table = exporter.parameter(f"{at}.relative_position_bias_table")
    bias = relative_bias(exporter, f"{at}.bias", table, [m.size, m.size])
    y = attend(exporter, at, [*parts, bias], m.scale_factor, 0.0)
    y = exporter.emit(None, "Transpose", [y], {"dims": [0, 1, 3, 2, 4]}, name=f"{at}.by_position")
    y = exporter.emit(None, "Reshape", [y], {"dims": [-1, features]}, name=f"{at}.rows")
    return exporter.of_rows(product(exporter, f"{at}.merge", y, f"{at}.merge.weight", f"{at}.merge.bias"))


def no_output(exporter: Any, node: Node) -> None:
    """Of a check."""
    return


MODULES: dict[type, Callable[[Any, Node, Any], Any]] = {
    nn.MultiheadAttention: multihead_attention,
    maxvit.RelativePositionalMultiHeadAttention: relative_attention,
}
FUNCTIONS: dict[Any, Callable[[Any, Node], Any]] = {
    swin_transformer.shifted_window_attention: shifted_window_attention,
    swin_transformer._get_relative_position_bias: get_relative_position_bias,
    swin_transformer._patch_merging_pad: patch_merging_pad,
    torch._assert: no_output,
}
WEIGHTS = ("qkv_weight", "proj_weight", "qkv_bias", "proj_bias")


def is_table(name: str) -> bool:
    """Whether a get_attr is of a table of positions alone, which is computed."""
    return name.endswith("relative_position_index")


def reads_tensor(user: Node, node: Node) -> bool:
    """Whether a function of those above reads a parameter as a tensor, not as weights of a product."""
    if user.target is not swin_transformer.shifted_window_attention:
        return True
    given = dict(zip(ARGUMENTS, user.args)) | dict(user.kwargs)
    return all(given.get(name) is not node for name in WEIGHTS)
