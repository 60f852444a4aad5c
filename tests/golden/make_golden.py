#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the golden files: what PyTorch computes in float64 for the cases marked "golden".

    python3 tests/golden/make_golden.py [FILE ...]      e.g. conv2d

For every tests/cases/<op>.json with such cases, tests/golden/<op>.h5 gets a group a case with inputs,
parameters, outputs, gradients of the outputs and of all float operands, and updated states. The data
lies in the files, so that the tests need neither PyTorch nor the same random numbers.
Needs torch, numpy and h5py.
"""
import json
import pathlib
import sys
import zlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent / "cases"
INDICES = ("labels", "indices", "once")
FLOATS = ("float", "float32", "double", "float64", "half", "float16", "bfloat16")


def is_float(spec):
    return spec.get("dtype", "float") in FLOATS


def make(spec, shape, random):
    """Values that float32 and shorter types hold exactly, and that compress well."""
    count = int(np.prod(shape)) if shape else 1
    fill = spec.get("fill", "normal")
    if fill == "labels":
        values = random.integers(0, spec.get("classes", 2), count)
    elif fill == "indices":
        values = random.integers(-spec["classes"], spec["classes"], count)
    elif fill == "once":
        values = random.permutation(spec["classes"])[:count]
    elif fill == "distinct":
        values = random.permutation(count) / 8 - count // 16
    elif fill == "equal":
        values = np.full(count, 0.75)
    elif fill == "positive":
        values = np.round(random.uniform(0.1, 2, count) * 64 + 1) / 64
    elif fill == "uniform":
        low, high = spec.get("min", -1), spec.get("max", 1)
        values = np.clip(np.round(random.uniform(low, high, count) * 64) / 64, low, high)
    else:
        values = np.round(random.normal(0, 1, count) * 64) / 64
    if not is_float(spec) and fill not in INDICES:
        values = np.trunc(values * 8)
    if spec.get("dtype") in TYPES:
        values = torch.tensor(np.asarray(values, dtype=np.float64)).to(TYPES[spec["dtype"]]).double().numpy()
    return np.asarray(values, dtype=np.float64).reshape(shape)


def activate(name, x, o):
    alpha, beta = o.get("alpha"), o.get("beta")
    if name == "softplus" and alpha is None:
        alpha, beta = beta, o.get("threshold")
    for names, where in ((("negative_slope", "min_val", "lambd"), "alpha"), (("max_val", "value"), "beta")):
        for given in names:
            if given in o and where == "alpha":
                alpha = o[given]
            elif given in o:
                beta = o[given]
    if name == "threshold":
        alpha = o.get("threshold", alpha)
    def get(value, default):
        return default if value is None else value

    return {
        "identity": lambda: x * 1, "relu": lambda: F.relu(x), "relu6": lambda: F.relu6(x),
        "sigmoid": lambda: torch.sigmoid(x), "tanh": lambda: torch.tanh(x), "gelu": lambda: F.gelu(x),
        "gelu_tanh": lambda: F.gelu(x, approximate="tanh"), "silu": lambda: F.silu(x),
        "hardswish": lambda: F.hardswish(x), # F.hardsigmoid's gradient has float32's 1/6 even in float64.
        "hardsigmoid": lambda: torch.where((x > -3) & (x < 3), x / 6 + 0.5, (x >= 3).double()),
        "hardtanh": lambda: F.hardtanh(x, get(alpha, -1.0), get(beta, 1.0)),
        "leaky_relu": lambda: F.leaky_relu(x, get(alpha, 0.01)), "elu": lambda: F.elu(x, get(alpha, 1.0)),
        "selu": lambda: F.selu(x), "celu": lambda: F.celu(x, get(alpha, 1.0)),
        "softplus": lambda: F.softplus(x, get(alpha, 1.0), get(beta, 20.0)), "softsign": lambda: F.softsign(x),
        "mish": lambda: F.mish(x), "logsigmoid": lambda: F.logsigmoid(x), "tanhshrink": lambda: F.tanhshrink(x),
        "softshrink": lambda: F.softshrink(x, get(alpha, 0.5)), "hardshrink": lambda: F.hardshrink(x, get(alpha, 0.5)),
        "threshold": lambda: F.threshold(x, get(alpha, 0.0), get(beta, 0.0)), "exp": lambda: torch.exp(x),
        "log": lambda: torch.log(x), "sqrt": lambda: torch.sqrt(x), "square": lambda: x * x,
        "abs": lambda: torch.abs(x), "neg": lambda: -x,
    }[name]()


def pair(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def spatial(values):
    return [int(v) for v in values.shape[2:]]


def convolution(is_transposed):
    def call(o, x, p):
        x, dims, pad, more = x[0], x[0].dim() - 2, o.get("pad", 0), {}
        if is_transposed:
            more["output_padding"] = o.get("output_pad", 0)
        elif isinstance(pad, list) and len(pad) == 2 * dims:  # in front and behind
            x, pad = F.pad(x, [size for i in reversed(range(dims)) for size in (pad[i], pad[i + dims])]), 0
        function = getattr(F, f"conv{'_transpose' * is_transposed}{dims}d")
        y = function(x, p[0], p[1] if len(p) > 1 else None, stride=o.get("stride", 1), padding=pad,
                     dilation=o.get("dilate", 1), groups=o.get("groups", 1), **more)
        return activate(o.get("activation", "identity"), y, {})

    return call


def convolution_shapes(is_transposed):
    def shapes(o, x):
        kernel = o["kernel"] if isinstance(o["kernel"], list) else [o["kernel"]] * (len(x[0]) - 2)
        first, second = (x[0][1], o["channels_out"]) if is_transposed else (o["channels_out"], x[0][1])
        return [[first, second // o.get("groups", 1)] + kernel] + bias_of(o, [o["channels_out"]])

    return shapes


def windows(o):
    return {"kernel_size": o["kernel"], "dilation": o.get("dilate", 1), "padding": o.get("pad", 0), "stride": o.get("stride", 1)}


def pooling(o, x, p):
    dims, ceil, largest = x[0].dim() - 2, bool(o.get("ceil_mode", False)), o.get("mode", "max") == "max"
    if o.get("global") or "output" in o:
        size = o.get("output", 1) if isinstance(o.get("output", 1), list) else [o.get("output", 1)] * dims
        size = [x[0].shape[2 + i] if n == -1 else n for i, n in enumerate(size)]
        if not largest:
            return [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][dims - 1](x[0], size)
        y, at = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d][dims - 1](
            x[0], size, return_indices=True)
        return [y, at + 0 * y] if o.get("positions") == "image" else y
    kernel, stride, pad = o["kernel"], o.get("stride", 1), o.get("pad", 0)
    if not largest:
        function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][dims - 1]
        divisor = {"divisor_override": o.get("divisor_override")} if dims > 1 else {}
        return function(x[0], kernel, stride, pad, ceil, bool(o.get("count_include_pad", False)), **divisor)
    function, image = [F.max_pool1d, F.max_pool2d, F.max_pool3d][dims - 1], x[0]
    top, left = 0, 0
    if isinstance(pad, list) and len(pad) == 4:  # of two dimensions, which differ in front and behind
        top, left, bottom, right = pad
        image, pad = F.pad(image, (left, right, top, bottom), value=-torch.inf), 0
    y, at = function(image, kernel, stride, pad, o.get("dilate", 1), ceil_mode=ceil, return_indices=True)
    if image is not x[0]:
        at = (at // image.shape[3] - top) * x[0].shape[3] + at % image.shape[3] - left
    return [y, at + 0 * y] if o.get("positions") == "image" else y


def pooling_as(**options):
    """The function of another name of Pooling, whose positions are in the image."""
    return lambda o, x, p: pooling(o | options | ({"positions": "image"} if o.get("return_indices") else {}), x, p)


def batch_norm(o, x, p, training):
    mean, variance = p[0].detach().clone(), p[1].detach().clone()
    scale, offset = (p[2], p[3]) if len(p) > 2 else (None, None)
    batch = training and not o.get("use_global_stats", False)
    y = F.batch_norm(x[0], mean, variance, scale, offset, batch, o.get("momentum", 0.1), o.get("eps", 1e-5))
    return y, ({0: mean, 1: variance} if batch else {})


def layer_norm(o, x, p):
    shape = o.get("normalized_shape")
    shape = [shape] if isinstance(shape, int) else shape
    shape = shape or list(x[0].shape)[-o.get("dims", 1):]
    return F.layer_norm(x[0], shape, p[0] if p else None, p[1] if len(p) > 1 else None, o.get("eps", 1e-5))


def rms_norm(o, x, p):
    shape = o.get("normalized_shape") or list(x[0].shape)[-o.get("dims", 1):]
    return F.rms_norm(x[0], shape, p[0] if p else None, o.get("eps", 1e-5))


def gated_activation(o, x, p):
    first, second = x[0].chunk(2, o.get("axis", -1))
    gate, value = (first, second) if o.get("gate", "first") == "first" else (second, first)
    return value * activate(o.get("activation", "silu"), gate, {})


def rotary_embedding(o, x, p):
    """As transformers' apply_rotary_pos_emb of GPT-NeoX, and as GPT-J's, whose pairs are neighbours."""
    values, cos, sin = x[:3]
    if len(x) > 3:
        cos, sin = cos[x[3].long()], sin[x[3].long()]
    turned = 2 * cos.shape[-1]
    part, rest = values[..., :turned], values[..., turned:]
    if o.get("interleaved"):
        other = torch.stack((-part[..., 1::2], part[..., ::2]), -1).flatten(-2)
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    else:
        other = torch.cat((-part[..., turned // 2:], part[..., :turned // 2]), -1)
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    return torch.cat((part * cos + other * sin, rest), -1)


def linear_cross_entropy(o, x, p):
    logits = F.linear(x[0].flatten(0, -2), p[0], p[1] if len(p) > 1 else None)
    reduce = o.get("reduce", "mean")
    y = F.cross_entropy(logits, x[1].long().flatten(), reduction=reduce, ignore_index=o.get("ignore_index", -(10**9)))
    return y.reshape(x[1].shape if reduce == "none" else 1)


def resize(o, x, p):
    dims = x[0].dim() - 2
    method = o.get("method", "nearest")
    names = {"linear": ["linear", "bilinear", "trilinear"][dims - 1], "cubic": "bicubic"}
    how = {"mode": names.get(method, method)}
    if method in names:
        how |= {"align_corners": bool(o.get("align_corners")), "antialias": bool(o.get("antialias"))}
    if "scales" in o:
        how["scale_factor"] = o["scales"]
    else:
        how["size"] = o["output"]
    return F.interpolate(x[0], **how)


def interpolation(o, x, p):
    sizes = {"scales": (o["scale_y"], o["scale_x"])} if o.get("scale_y", -1) > 0 else {"output": (o["out_h"], o["out_w"])}
    return resize(o | sizes | ({"method": "linear"} if o.get("method") == "bilinear" else {}), x, p)


def elementwise(o, x, p):
    a, b = x[0] * o.get("coef1", 1), x[1] * o.get("coef2", 1)
    kind = o.get("operation", "sum")
    y = a + b if kind == "sum" else a * b if kind == "prod" else torch.maximum(a, b)
    return activate(o.get("activation", "identity"), y, {})


def matmul(o, x, p):
    def turn(t, flag):
        return t.transpose(-1, -2) if flag and t.dim() > 1 else t

    y = torch.matmul(turn(x[0], o.get("transpose_a")), turn(x[1], o.get("transpose_b"))) * o.get("alpha", 1.0)
    return y + x[2] if len(x) > 2 else y


def matmul_add(o, x, p):
    c = x[2] * o.get("beta", 1.0)
    return matmul(o, x[:2], p) + c


def reduction(o, x, p):
    rank = x[0].dim()
    dims = o.get("dims")
    dims = [dims] if isinstance(dims, int) else dims
    if not dims:
        start = o.get("start_axis", 0)
        dims = list(range(start if start >= 0 else start + rank, rank))
    v = {"sum": x[0], "mean": x[0], "sumsq": x[0] * x[0], "abssum": x[0].abs()}[o.get("method", "sum")]
    keep = bool(o.get("keep_dim", True))
    y = v.mean(dims, keep) if o.get("method") == "mean" else v.sum(dims, keep)
    return y * o.get("output_scale", 1.0)


def slice_(o, x, p):
    dim, size = o.get("dim", 1), x[0].shape[o.get("dim", 1)]
    end = o.get("end", -1)
    index = [slice(None)] * x[0].dim()
    index[dim] = slice(o.get("begin", 0), size if end == -1 else end)
    return x[0][tuple(index)] * 1


def squeeze(o, x, p):
    if o.get("dims") and not o.get("all"):
        return torch.squeeze(x[0], tuple(o["dims"])) * 1
    return torch.squeeze(x[0]) * 1


def reshape(o, x, p):
    return x[0].reshape([x[0].shape[i] if d == 0 else d for i, d in enumerate(o["dims"])]) * 1


def transpose(o, x, p):
    if o.get("dims"):
        return x[0].permute(o["dims"]) * 1
    return x[0].transpose(o.get("dim0", 0), o.get("dim1", 1)) * 1


def recurrent(kind):
    def run(o, x, p):
        net = kind(x[0].shape[-1], o["hidden_size"], o.get("num_layers", 1), bool(o.get("bias", True)),
                   bool(o.get("batch_first", False)), bidirectional=bool(o.get("bidirectional", False))).double()
        names = [name for name, _ in net.named_parameters()]
        values = dict(zip(names, p))
        states = None if len(x) == 1 else (x[1] if kind is torch.nn.GRU else (x[1], x[2]))
        y, h = torch.func.functional_call(net, values, (x[0], states) if states is not None else (x[0],))
        return [y] + (list(h) if isinstance(h, tuple) else [h])
    return run


def softmax_backward(o, x, p):
    function = torch.ops.aten._log_softmax_backward_data if o.get("log") else torch.ops.aten._softmax_backward_data
    return function(x[0], x[1], o.get("dim", o.get("axis", 1)), torch.float64)


def activation_backward(o, x, p):
    aten, (dy, y) = torch.ops.aten, x
    return {
        "identity": lambda: dy * 1, "relu": lambda: aten.threshold_backward(dy, y, 0),
        "relu6": lambda: aten.hardtanh_backward(dy, y, 0, 6), "sigmoid": lambda: aten.sigmoid_backward(dy, y),
        "tanh": lambda: aten.tanh_backward(dy, y), "elu": lambda: aten.elu_backward(dy, 1, 1, 1, True, y),
        "leaky_relu": lambda: aten.leaky_relu_backward(dy, y, o["negative_slope"], True),
    }[o["activation"]]()


def batch_norm_backward(o, x, p, training):
    dy, x_, mean, rstd = x[:4]
    batch = training and not o.get("use_global_stats", False)
    return list(torch.ops.aten.native_batch_norm_backward(
        dy, x_, x[4] if len(x) > 4 else None, mean, rstd**-2, mean, rstd, batch, 0.0, [True] * 3))


def layer_norm_backward(o, x, p):
    dy, x_, mean, rstd = x[:4]
    shape = o.get("normalized_shape") or list(x_.shape)[-o.get("dims", 1):]
    weight = x[4] if len(x) > 4 else torch.ones(shape, dtype=torch.float64)
    return list(torch.ops.aten.native_layer_norm_backward(
        dy, x_, shape, mean, rstd, weight, torch.zeros_like(weight), [True] * 3))


def rms_norm_backward(o, x, p):
    dy, x_, rstd = x[:3]
    shape = o.get("normalized_shape") or list(x_.shape)[-o.get("dims", 1):]
    weight = x[3] if len(x) > 3 else torch.ones(shape, dtype=torch.float64)
    backward = torch._decomp.decomposition_table[torch.ops.aten._fused_rms_norm_backward.default]  # none for the CPU
    return list(backward(dy, x_, shape, rstd, weight, [True] * 2))


def group_norm_backward(o, x, p):
    dy, x_, mean, rstd = x[:4]
    n, c = x_.shape[:2]
    weight = x[4] if len(x) > 4 else torch.ones(c, dtype=torch.float64)
    return list(torch.ops.aten.native_group_norm_backward(
        dy, x_, mean, rstd, weight, n, c, int(np.prod(x_.shape[2:])), o["num_groups"], [True] * 3))


def max_pooling_backward(o, x, p):
    image = torch.zeros(*x[0].shape[:2], *o["sizes"], dtype=torch.float64)
    return torch.ops.aten.max_pool2d_with_indices_backward(
        x[0], image, pair(o["kernel"]), pair(o.get("stride", 1)), pair(o.get("pad", 0)), (1, 1),
        bool(o.get("ceil_mode", False)), x[1].long())


def nll_loss(o, x, p):
    ignored, label = o.get("ignore_index", -(10**9)), x[1].long()
    weight = x[2].detach() if len(x) > 2 else None
    loss = F.nll_loss(x[0], label, weight, ignore_index=ignored, reduction=o.get("reduce", "mean"))
    if not o.get("return_weight"):
        return loss
    each = torch.ones(x[0].shape[1], dtype=torch.float64) if weight is None else weight
    return [loss, each[label[label != ignored]].sum().reshape(1) + 0 * loss]


def nll_loss_backward(o, x, p):
    label = x[1].long()
    shape = [label.shape[0], o["classes"], *label.shape[1:]]
    flat = [label.shape[0], o["classes"], 1, int(np.prod(label.shape[1:]))]
    reduction = ["none", "mean", "sum"].index(o.get("reduce", "mean"))
    dy = x[0].reshape(flat[0], 1, flat[3]) if reduction == 0 else x[0].reshape(())
    dx = torch.ops.aten.nll_loss2d_backward(
        dy, torch.zeros(flat, dtype=torch.float64), label.reshape(flat[0], 1, flat[3]),
        x[3] if len(x) > 3 else None, reduction, o.get("ignore_index", -(10**9)), x[2].reshape(()))
    return dx.reshape(shape)


def split_params(shapes):
    return lambda o, x: shapes(o, x)


def bias_of(o, shape):
    return [shape] if o.get("bias", True) else []


def norm_shapes(o, x):
    shape = o.get("normalized_shape")
    shape = [shape] if isinstance(shape, int) else shape
    shape = shape or x[0][-o.get("dims", 1):]
    if not o.get("elementwise_affine", True):
        return []
    return [shape] + ([shape] if o.get("bias", True) else [])


def recurrent_shapes(gates):
    def shapes(o, x):
        hidden, directions = o["hidden_size"], 2 if o.get("bidirectional") else 1
        result = []
        for layer in range(o.get("num_layers", 1)):
            for _ in range(directions):
                size = x[0][-1] if layer == 0 else hidden * directions
                result += [[gates * hidden, size], [gates * hidden, hidden]]
                result += [[gates * hidden]] * (2 if o.get("bias", True) else 0)
        return result
    return shapes


def parts(o, x, p):
    return [t * 1 for t in torch.chunk(x[0], o["parts"], o.get("dim", 1))]


def from_front(index, size):
    return torch.where(index < 0, index + size, index).long()


def tuples(o, data, indices):
    """What indexes the data: a tensor per dimension."""
    batch = o.get("batch_dims", 0)
    grid = [torch.arange(data.shape[d]).reshape([-1] + [1] * (indices.dim() - 2 - d)) for d in range(batch)]
    return tuple(grid + [from_front(t, data.shape[batch + k]) for k, t in enumerate(indices.unbind(-1))])


def along(o, data, indices):
    """What indexes the data: a tensor for each of dims, all of the other dimensions."""
    parts = [slice(None)] * data.dim()
    for k, dim in enumerate(o["dims"]):
        parts[dim] = from_front(indices[..., k], data.shape[dim])
    return tuple(parts)


def gather(o, x, p):
    data, indices, dim = x[0], x[1], o.get("dim", 0)
    mode = o.get("mode", "rows")
    if mode == "tuples":
        return data[tuples(o, data, indices)] * 1
    if mode == "dims":
        return data[along(o, data, indices)] * 1
    at = from_front(indices, data.shape[dim])
    if mode == "elements":
        return torch.gather(data, dim, at)
    dim = dim % data.dim()
    shape = list(data.shape[:dim]) + list(at.shape) + list(data.shape[dim + 1:])
    return data.index_select(dim, at.flatten()).reshape(shape)


def scatter(o, x, p):
    data = x[0] if len(x) == 3 else torch.zeros(o["shape"], dtype=torch.float64)
    indices, updates, dim = x[-2], x[-1], o.get("dim", 0)
    mode, how = o.get("mode", "rows"), o.get("reduction", "none")
    if mode == "tuples":
        return data.index_put(tuples(o, data, indices), updates, accumulate=how == "add")
    if mode == "dims":
        at, parts = torch.arange(data.numel()).reshape(data.shape)[along(o, data, indices)], data.flatten()
        return parts.index_put((at.flatten(),), updates.flatten(), accumulate=how == "add").reshape(data.shape)
    at = from_front(indices, data.shape[dim])
    if mode == "rows":
        rows = updates.reshape(list(data.shape[:dim]) + [-1] + list(data.shape[dim + 1:]))
        return (data.index_add if how == "add" else data.index_copy)(dim, at.flatten(), rows)
    if how == "none":
        return data.scatter(dim, at, updates)
    if how == "add":
        return data.scatter_add(dim, at, updates)
    return data.scatter_reduce(dim, at, updates, {"mul": "prod", "max": "amax", "min": "amin", "mean": "mean"}[how],
                               include_self=bool(o.get("include_self", True)))


def sort(o, x, p):
    """TopK, too: torch.topk does not say which of equal elements it takes."""
    dim = o.get("dim", -1)
    descending = o.get("largest", True) if "k" in o else o.get("descending", False)
    values, positions = x[0].sort(dim=dim, descending=descending, stable=True)
    k = o.get("k", x[0].shape[dim])
    return [values.narrow(dim, 0, k), positions.narrow(dim, 0, k) + 0 * values.narrow(dim, 0, k)]


def arg_reduce(o, x, p):
    """Positions along the dimension, or among all elements. Ties are not golden: torch.max does not say which it takes."""
    dim, keep = o.get("dim"), bool(o.get("keep_dim", False))
    positions = (torch.argmax if o.get("method", "max") == "max" else torch.argmin)(x[0], dim, keep)
    at = positions if keep and dim is not None and x[0].dim() else positions.unsqueeze(dim or 0)
    if dim is None or not x[0].dim():
        values = x[0].flatten()[positions.flatten()].reshape(positions.shape)
    else:
        values = x[0].gather(dim, at).reshape(positions.shape)
    return [values, positions + 0 * values]


def scan(o, x, p):
    dim, method, back = o.get("dim", -1), o.get("method", "sum"), bool(o.get("reverse", False))
    line = x[0].flip(dim) if back else x[0]
    if o.get("exclusive"):
        first = torch.full_like(line.narrow(dim, 0, 1), 0.0 if method == "sum" else 1.0)
        line = torch.cat([first, line.narrow(dim, 0, line.shape[dim] - 1)], dim)
    if method in ("max", "min"):
        values, positions = (torch.cummax if method == "max" else torch.cummin)(line, dim)
        return [values, positions + 0 * values]
    y = {"sum": torch.cumsum, "prod": torch.cumprod, "logsumexp": torch.logcumsumexp}[method](line, dim)
    return y.flip(dim) if back else y


def nonzero(o, x, p):
    found = torch.nonzero(x[0]).double()
    positions = torch.full((x[0].numel(), x[0].dim()), float(o.get("fill", -1)), dtype=torch.float64)
    positions[: len(found)] = found
    return [positions, torch.tensor([float(len(found))])]


TYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64}
# Programs in torch's words, by case.
POINTWISE = {
    "one_element": lambda x: x[0] * x[0] + 1,
    "scalar_shape": lambda x: x[0] * 2.5,
    "broadcast": lambda x: x[0] * x[1] + x[2],
    "per_channel": lambda x: (x[0] - x[1]) * torch.rsqrt(x[2] + 1e-5) * x[3],
    "several_outputs": lambda x: [torch.exp(-x[0] * x[0]) * x[1], torch.exp(-x[0] * x[0]) + x[1],
                                  torch.sigmoid(x[0]) * torch.tanh(x[1])],
    "functions": lambda x: [x[0].sin() * x[0].cos() + x[0].atan() + x[0].erf() + torch.expm1(x[0] / 4),
                            (x[0].abs() + 0.1) ** 1.5 + x[0].asinh()],
    "logarithms": lambda x: [x[0].log2() + x[0].log10(), x[0].exp2() / 4 + x[0].lgamma()],
    "gamma_negative": lambda x: [x[0].digamma(), torch.polygamma(1, x[0]) / 100],
    "error_functions": lambda x: [x[0].erfc() + (x[0] * 0.7).erfinv(), (x[0] * 0.999).erfinv()],
    "two_arguments": lambda x: [torch.atan2(x[0], x[1]) + torch.hypot(x[0], x[1]), torch.copysign(x[0], x[1].detach())],
    "quotients": lambda x: [torch.fmod(x[0], x[1]) + torch.remainder(x[0], x[1]),
                            torch.floor_divide(x[0], x[1]) - torch.div(x[0], x[1], rounding_mode="trunc")],
    "quotient_gradients": lambda x: torch.fmod(x[0], x[1]) * 2 + torch.remainder(x[0], x[1]),
    "integer_quotients": lambda x: [function(x[0].long() - 20, x[1].long() * 2 - 7).double() for function in (
        torch.floor_divide, lambda a, b: torch.div(a, b, rounding_mode="trunc"), torch.fmod, torch.remainder)],
    "statistics": lambda x: [x[0].sum([0, 2, 3], True), (x[0] * x[0]).sum([0, 2, 3], True)],
    "mean_and_copy": lambda x: [x[0].mean([2, 3], True), 2 * x[0]],
    "no_keep_dim": lambda x: (x[0] * x[1]).sum([0, 2]),
    "extremes": lambda x: [x[0].amax(1, True), x[0].amin(1, True)],
    "products": lambda x: x[0].prod(1, True),
    "two_axes_sets": lambda x: [x[0].sum(0, True), (x[0] * x[0]).sum(1, True), x[0] + 1],
}


def NO_PARAMS(o, x):
    return []


OPS = {  # type: (function of options, inputs, parameters; shapes of the parameters)
    **dict.fromkeys(["Convolution2D", "ConvolutionND"], (convolution(False), convolution_shapes(False))),
    **dict.fromkeys(["TransposedConvolution2D", "TransposedConvolutionND"], (convolution(True), convolution_shapes(True))),
    "MatMulAdd": (matmul_add, NO_PARAMS),
    "InnerProduct": (lambda o, x, p: activate(o.get("activation", "identity"),
                                              F.linear(x[0].flatten(1), p[0], p[1] if len(p) > 1 else None), {}),
                     lambda o, x: [[o["outputs"], int(np.prod(x[0][1:]))]] + bias_of(o, [o["outputs"]])),
    "BatchNorm": (batch_norm, lambda o, x: [[x[0][1]]] * (4 if o.get("affine", True) else 2)),
    "LayerNorm": (layer_norm, norm_shapes),
    "RMSNorm": (rms_norm, lambda o, x: norm_shapes({**o, "bias": False}, x)),
    "GatedActivation": (gated_activation, NO_PARAMS),
    "RotaryEmbedding": (rotary_embedding, NO_PARAMS),
    "LinearCrossEntropy": (linear_cross_entropy,
                           lambda o, x: [[o["outputs"], x[0][-1]]] + ([[o["outputs"]]] if o.get("bias") else [])),
    "GroupNorm": (lambda o, x, p: F.group_norm(x[0], o["num_groups"], *(p or [None, None]), o.get("eps", 1e-5)),
                  lambda o, x: [[x[0][1]]] * (2 if o.get("affine", True) else 0)),
    "Pooling": (pooling, NO_PARAMS),
    "Pooling2D": (pooling, NO_PARAMS),
    "PoolingND": (pooling_as(), NO_PARAMS),
    "AdaptivePooling": (pooling_as(), NO_PARAMS),
    "GlobalPooling": (pooling_as(**{"global": True}), NO_PARAMS),
    "MaxPooling2D": (pooling_as(positions="image"), NO_PARAMS),
    "Activation": (lambda o, x, p: activate(o["activation"], x[0], o), NO_PARAMS),
    "Elementwise": (elementwise, NO_PARAMS),
    "Softmax": (lambda o, x, p: (F.log_softmax if o.get("log") else F.softmax)(x[0], o.get("dim", o.get("axis", 1))), NO_PARAMS),
    "SoftmaxWithLoss": (lambda o, x, p: F.cross_entropy(
        x[0], x[1].long().reshape(x[0].shape[0], *x[0].shape[2:]), ignore_index=o.get("ignore_index", -(10**9))).reshape(1),
        NO_PARAMS),
    "NLLLoss": (nll_loss, NO_PARAMS),
    "NLLLossBackward": (nll_loss_backward, NO_PARAMS),
    "SoftmaxBackward": (softmax_backward, NO_PARAMS),
    "ActivationBackward": (activation_backward, NO_PARAMS),
    "BatchNormBackward": (batch_norm_backward, NO_PARAMS),
    "LayerNormBackward": (layer_norm_backward, NO_PARAMS),
    "RMSNormBackward": (rms_norm_backward, NO_PARAMS),
    "GroupNormBackward": (group_norm_backward, NO_PARAMS),
    "MaxPooling2DBackward": (max_pooling_backward, NO_PARAMS),
    "MSELoss": (lambda o, x, p: F.mse_loss(x[0], x[1], reduction=o.get("reduce", "mean")), NO_PARAMS),
    "HuberLoss": (lambda o, x, p: F.huber_loss(x[0], x[1], o.get("reduce", "mean"), o.get("delta", 1.0)), NO_PARAMS),
    "Concat": (lambda o, x, p: torch.cat(x, o.get("dim", 1)), NO_PARAMS),
    "Split": (parts, NO_PARAMS),
    "Slice": (slice_, NO_PARAMS),
    "Flatten": (lambda o, x, p: x[0].flatten(1) * 1, NO_PARAMS),
    "Reshape": (reshape, NO_PARAMS),
    "Squeeze": (squeeze, NO_PARAMS),
    "Transpose": (transpose, NO_PARAMS),
    "Pad": (lambda o, x, p: F.pad(x[0], o["pads"] if "pads" in o else o["pad"], o.get("mode", "constant"),
                                  *([o.get("value", 0.0)] if o.get("mode", "constant") == "constant" else [])), NO_PARAMS),
    "Reduction": (reduction, NO_PARAMS),
    "Threshold": (lambda o, x, p: (x[0] > o.get("threshold", 0)).double(), NO_PARAMS),
    "Hardtanh": (lambda o, x, p: F.hardtanh(x[0], o.get("min_val", -1.0), o.get("max_val", 1.0)), NO_PARAMS),
    "Abs": (lambda o, x, p: x[0].abs(), NO_PARAMS),
    "GridSample": (lambda o, x, p: F.grid_sample(x[0], x[1], o.get("mode", "bilinear"), o.get("padding_mode", "zeros"),
                                                 o.get("align_corners", False)), NO_PARAMS),
    "Unfold": (lambda o, x, p: F.unfold(x[0], **windows(o)), NO_PARAMS),
    "Fold": (lambda o, x, p: F.fold(x[0], o["output"], **windows(o)), NO_PARAMS),
    "Resize": (resize, NO_PARAMS),
    "Interpolation": (interpolation, NO_PARAMS),
    "Dropout": (lambda o, x, p: x[0] * 1, NO_PARAMS),
    "PReLU": (lambda o, x, p: F.prelu(x[0], p[0]), lambda o, x: [[o.get("num_parameters", 1)]]),
    "Embedding": (lambda o, x, p: F.embedding(x[0].long(), p[0], o.get("padding_idx")),
                  lambda o, x: [[o["num_embeddings"], o["embedding_dim"]]]),
    "Gather": (gather, NO_PARAMS),
    "Scatter": (scatter, NO_PARAMS),
    "TopK": (sort, NO_PARAMS),
    "Sort": (sort, NO_PARAMS),
    "ArgReduce": (arg_reduce, NO_PARAMS),
    "Scan": (scan, NO_PARAMS),
    "Nonzero": (nonzero, NO_PARAMS),
    "Flip": (lambda o, x, p: x[0].flip(o.get("dims", [])), NO_PARAMS),
    "MatMul": (matmul, NO_PARAMS),
    "Attention": (lambda o, x, p: F.scaled_dot_product_attention(
        x[0], x[1], x[2], x[3] if len(x) > 3 else None, is_causal=bool(o.get("is_causal", False)),
        scale=o.get("scale") or None, enable_gqa=bool(o.get("enable_gqa", False))), NO_PARAMS),
    "LSTM": (recurrent(torch.nn.LSTM), recurrent_shapes(4)),
    "GRU": (recurrent(torch.nn.GRU), recurrent_shapes(3)),
    "Cast": (lambda o, x, p: x[0].to(TYPES[o["dtype"]]).double(), NO_PARAMS),
}


def wanted(case):
    if case["type"] == "Pointwise":
        return case["name"] in POINTWISE
    if case["type"] == "Cast":  # PyTorch leaves floats out of an integer's range undefined
        types = [case["options"]["dtype"]] + [spec.get("dtype", "float") for spec in case["inputs"]]
        return all(name in TYPES for name in types) and not case.get("speed")
    return case.get("golden", False)


def run_case(case, group):
    random = np.random.default_rng(zlib.crc32((case["type"] + case["name"]).encode()))
    o, kind = case.get("options", {}), case["type"]
    function, shapes = OPS.get(kind, (lambda o, x, p: POINTWISE[case["name"]](x), NO_PARAMS))
    fills = case.get("params", [])
    operands, floats = [], []
    for spec in case["inputs"]:
        operands.append(make(spec, spec["shape"], random))
        weights = kind == "NLLLoss" and len(floats) == 2  # which have no gradient
        floats.append(is_float(spec) and spec.get("fill") not in INDICES and not weights)
    for i, shape in enumerate(shapes(o, [spec["shape"] for spec in case["inputs"]])):
        operands.append(make(fills[i] if i < len(fills) else {}, shape, random))
        floats.append(not (kind == "BatchNorm" and i < 2))
    tensors = [torch.tensor(values, dtype=torch.float64, requires_grad=flag and case.get("gradient", True))
               for values, flag in zip(operands, floats)]
    for i, spec in enumerate(case["inputs"]):
        if spec.get("dtype") == "bool":
            tensors[i] = tensors[i].bool()
    inputs, params = tensors[:len(case["inputs"])], tensors[len(case["inputs"]):]
    updated = {}
    if kind == "BatchNorm":
        outputs, updated = function(o, inputs, params, case.get("training", False))
    elif kind == "BatchNormBackward":
        outputs = function(o, inputs, params, case.get("training", False))
    else:
        outputs = function(o, inputs, params)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]

    def store(name, values):
        group.create_dataset(name, data=values, **({"compression": 9, "shuffle": True} if values.size > 100 else {}))

    for i, values in enumerate(operands):
        store(f"operand{i}", values)
    for i, output in enumerate(outputs):
        store(f"output{i}", output.detach().numpy())
    for i, state in updated.items():
        store(f"updated{len(inputs) + i}", state.numpy())
    wanting = [t for t in tensors if t.requires_grad]
    if not wanting or not any(output.requires_grad for output in outputs):
        return
    seeds = [make({}, list(output.shape), random) for output in outputs]
    grads = torch.autograd.grad(outputs, wanting, [torch.tensor(s) for s in seeds], allow_unused=True)
    for i, seed in enumerate(seeds):
        store(f"output_gradient{i}", seed)
    for t, grad in zip(wanting, grads):
        index = next(i for i, other in enumerate(tensors) if other is t)
        store(f"gradient{index}", np.zeros(t.shape) if grad is None else grad.numpy())


def main():
    names = sys.argv[1:] or sorted(path.stem for path in CASES.glob("*.json"))
    torch.set_num_threads(1)
    for name in names:
        cases = [case for case in json.loads((CASES / f"{name}.json").read_text()) if wanted(case)]
        if not cases:
            continue
        path = HERE / f"{name}.h5"
        with h5py.File(path, "w", libver=("v110", "v110")) as file:
            for case in cases:
                try:
                    run_case(case, file.create_group(case["type"] + "." + case["name"]))
                except Exception as error:
                    raise SystemExit(f"{name}: {case['name']}: {error}") from error
        print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
