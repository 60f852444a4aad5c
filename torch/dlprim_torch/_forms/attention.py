# SPDX-License-Identifier: MIT
"""Attention: whole, as exported models have it, and as GPUs compute it, with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._builder import Builder
from .table import Node, form, rounded, widened


@form("scaled_dot_product_attention.default")
def attention(
    b: Builder,
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    options: dict[str, Any] = {"is_causal": is_causal, "enable_gqa": enable_gqa, "dropout_p": float(dropout_p)}
    options["scale"] = float(scale) if scale is not None else 0.0
    shown = {name: option for name, option in options.items() if option}
    return b.layer("Attention", [query, key, value] + ([attn_mask] if attn_mask is not None else []), shown)


def attention_options(b: Builder, query: Node, key: Node, dropout_p: float, causal: bool, scale: float | None) -> Any:
    options: dict[str, Any] = {"is_causal": causal, "enable_gqa": b.sizes(query)[-3] != b.sizes(key)[-3]}
    options |= {"scale": float(scale or 0), "dropout_p": float(dropout_p), "stream": 0}
    return options


@form("_scaled_dot_product_fused_attention_overrideable.default")
def fused_attention(
    b: Builder,
    query: Node,
    key: Node,
    value: Node,
    attn_bias: Node | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Any:
    keys = b.draw() if dropout_p > 0 else []
    inputs = [widened(b, x) for x in (query, key, value, attn_bias) if x is not None]
    options = attention_options(b, query, key, dropout_p, is_causal, scale)
    y, logarithms = b.layer("AttentionForward", [*inputs, *keys], options, results=2)
    y, sizes = rounded(b, y, query), b.sizes(query)[:-1]
    seed, step = keys or (None, None)
    return [y, b.reshape(logarithms, sizes, [1] * (3 - len(sizes)) + sizes), None, None, None, None, seed, step, None]


@form("_scaled_dot_product_fused_attention_overrideable_backward.default")
def fused_attention_backward(
    b: Builder,
    grad_out: Node,
    query: Node,
    key: Node,
    value: Node,
    attn_bias: Node | None,
    grad_input_mask: Sequence[bool],
    out: Node,
    logsumexp: Node,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Node,
    philox_offset: Node,
    scale: float | None,
) -> Any:
    if attn_bias is not None and grad_input_mask[3]:
        raise b.no_form("of the mask has no form in a network of dlprim")
    rows = b.sizes(query)[:-1]
    dy = widened(b, grad_out)
    sums = b.pointwise("y0 = sum[-1](x0 * x1)", [dy, widened(b, out)], keep_dim=False)
    inputs = [*(widened(b, x) for x in (query, key, value)), b.reshape(logsumexp, b.sizes(logsumexp), rows), sums, dy]
    inputs += [] if attn_bias is None else [widened(b, attn_bias)]
    if dropout_p > 0:
        inputs += [b.reshape(x, [], [1]) for x in (philox_seed, philox_offset)]
    options = attention_options(b, query, key, dropout_p, is_causal, scale)
    dq, dk, dv = b.layer("AttentionBackward", inputs, options, results=3)
    if options["enable_gqa"]:  # [..., groups, heads of a group, positions, features]
        batch, groups = b.sizes(query)[:-3], b.sizes(key)[-3]
        each = [*batch, groups, b.sizes(query)[-3] // groups]
        dq = b.reshape(dq, [*each, *b.sizes(query)[-2:]], b.sizes(query))
        dk, dv = (b.pointwise(f"y0 = sum[{len(batch) + 1}](x0)", [x], keep_dim=False) for x in (dk, dv))
    return [*(rounded(b, x, query) for x in (dq, dk, dv)), None]
