# SPDX-License-Identifier: MIT
"""Random models of the operators that ONNX Runtime's optimiser and exporters of scikit-learn write, for make_onnx_golden.py.

Only what ONNX Runtime's CPU provider computes is a case, and only outputs that it defines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx_case import Array, Case, Random, shape_of


def normal(random: Random, *shape: int) -> Array:
    return random.normal(size=shape).astype(np.float32)


def sizes(random: Random, count: int, low: int, high: int) -> list[int]:
    return [int(size) for size in random.integers(low, high + 1, count)]


def perhaps(case: Case, value: Array, share: float = 0.5) -> bool:
    """Adds the value or leaves it out."""
    if case.random.random() < share:
        case.either(value)
        return True
    case.absent()
    return False


def flag(random: Random) -> int:
    return int(random.integers(0, 2))


def activation(case: Case) -> None:
    random = case.random
    shape = shape_of(random, 2) + (2 * int(random.integers(1, 5)),)
    case.fed(normal(random, *shape) * 3)
    if case.kind in ("BiasGelu", "FastGelu"):
        case.either(normal(random, shape[-1]))
    if case.kind == "QuickGelu" and flag(random):
        case.attributes["alpha"] = float(np.float32(random.uniform(0.5, 2)))


def fused_conv(case: Case) -> None:
    random = case.random
    group, kernel = int(random.integers(1, 3)), sizes(random, 2, 1, 3)
    channels_in, channels_out = 2 * group, 3 * group
    image = sizes(random, 2, 6, 9)
    pads, strides = sizes(random, 4, 0, 1), sizes(random, 2, 1, 2)
    case.fed(normal(random, 2, channels_in, *image))
    case.constant(normal(random, channels_out, channels_in // group, *kernel))
    has_bias = perhaps(case, normal(random, channels_out))
    name = str(random.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"]))
    made = [(image[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    if name == "Relu" and has_bias and random.random() < 0.7:
        case.fed(normal(random, 2, channels_out, *made))
    parameters = {"LeakyRelu": [0.125], "Clip": [-0.5, 1.5], "HardSigmoid": [0.25, 0.5]}
    case.attributes |= {
        "activation": name,
        "group": group,
        "kernel_shape": kernel,
        "pads": pads,
        "strides": strides,
    }
    if name in parameters:
        case.attributes["activation_params"] = parameters[name]


def fused_matmul(case: Case) -> None:
    random = case.random
    rank = int(random.integers(2, 5))
    m, n, k = sizes(random, 3, 1, 6)
    batch = shape_of(random, rank - 2, 3)
    for name, matrix in (("A", (m, k)), ("B", (k, n))):
        turned = flag(random)
        value = normal(random, *batch, *(matrix[::-1] if turned else matrix))
        # ONNX Runtime's dimensions of a batch stand behind the first one of the matrix.
        behind = flag(random) if rank > 2 and case.kind == "FusedMatMul" else 0
        if behind:
            value = np.ascontiguousarray(np.moveaxis(value, rank - 2, 0))
            case.attributes[f"transBatch{name}"] = 1
        case.attributes[f"trans{name}"] = turned
        case.fed(value) if name == "A" else case.either(value)
    if flag(random):
        case.attributes["alpha"] = 0.375


def fused_gemm(case: Case) -> None:
    random = case.random
    m, n, k = sizes(random, 3, 1, 8)
    a, b = flag(random), flag(random)
    case.fed(normal(random, *((k, m) if a else (m, k))))
    case.either(normal(random, *((n, k) if b else (k, n))))
    perhaps(case, normal(random, *[(n,), (m, n), (1, n), (m, 1)][int(random.integers(0, 4))]), 0.7)
    name = str(random.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softplus"]))
    case.attributes |= {"transA": a, "transB": b, "alpha": 0.5, "activation": name}
    case.attributes |= {"beta": float(random.choice([1.0, 0.25]))}
    if name in ("LeakyRelu", "HardSigmoid", "Elu"):
        case.attributes["activation_alpha"] = 0.25
    if name == "HardSigmoid":
        case.attributes["activation_beta"] = 0.5


def skip_norm(case: Case) -> None:
    random = case.random
    batch, length, width = sizes(random, 3, 2, 6)
    simplified = case.kind == "SkipSimplifiedLayerNormalization"
    case.fed(normal(random, batch, length, width))
    shapes = [(batch, length, width), (1, length, width), (length, width)]
    case.fed(normal(random, *shapes[int(random.integers(0, 3))]))
    case.either(normal(random, width))
    if not simplified:
        perhaps(case, normal(random, width))
    perhaps(case, normal(random, width))
    case.attributes["epsilon"] = float(np.float32(random.choice([1e-12, 1e-5, 1e-2])))
    if flag(random):
        case.outputs = ["y0", "", "", "y3"]


def rms_norm(case: Case) -> None:
    random = case.random
    shape = shape_of(random, 3, 6)
    axis = int(random.integers(0, 3))
    case.fed(normal(random, *shape))
    case.either(normal(random, *shape[axis:]))
    case.attributes |= {"axis": axis - 3 * flag(random), "epsilon": 1e-3, "stash_type": 1}
    case.outputs = 1 + flag(random)


def embedding_norm(case: Case) -> None:
    random = case.random
    batch, length, width = sizes(random, 3, 2, 6)

    def ids(rows: int) -> Array:
        return random.integers(0, rows, (batch, length)).astype(np.int32)

    has_segments = flag(random)
    case.fed(ids(9))
    case.fed(ids(3)) if has_segments else case.absent()
    case.constant(normal(random, 9, width))
    case.constant(normal(random, 8, width))
    case.constant(normal(random, 3, width)) if has_segments else case.absent()
    case.constant(normal(random, width))
    case.constant(normal(random, width))
    case.fed((np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int32)) if flag(
        random
    ) else case.absent()
    if flag(random):
        case.fed(random.integers(0, 8, (1 if flag(random) else batch, length)).astype(np.int32))
    case.attributes["epsilon"] = 1e-5
    case.outputs = ["y0", "y1", "y2"] if flag(random) else ["y0", "y1"]


def key_mask(case: Case, batch: int, queries: int, total: int, kinds: list[str]) -> None:
    """Masks of which whole rows are masked come with a small filter value: the default leaves scores few digits."""
    random = case.random
    kind = random.choice(kinds)
    small = flag(random)
    if small or kind == "both":
        case.attributes["mask_filter_value"] = float(random.choice([-3, -20]))
    if kind == "none":
        return case.absent()
    if kind == "ends":
        return case.fed(random.integers(1, total + 1, batch).astype(np.int32))
    if kind == "both":
        begins = random.integers(0, total, batch)
        return case.fed(np.concatenate([np.minimum(begins + 2, total), begins]).astype(np.int32))
    shape = (batch, total) if kind == "keys" else (batch, queries, total)
    mask = (random.random(shape) < 0.7).astype(np.int32)
    if not small:
        mask[..., 0] = 1
    return case.fed(mask)


def attention(case: Case) -> None:
    random = case.random
    batch, length, inner, heads = *sizes(random, 3, 2, 5), int(random.integers(1, 4))
    has_past = flag(random)
    widths = [heads * int(random.integers(1, 5))] * 3
    if not has_past and flag(random):
        widths[2] = heads * int(random.integers(1, 5))
        case.attributes["qkv_hidden_sizes"] = widths
    past = int(random.integers(1, 4)) if has_past else 0
    case.fed(normal(random, batch, length, inner))
    case.constant(normal(random, inner, sum(widths)))
    case.constant(normal(random, sum(widths)))
    key_mask(case, batch, length, past + length, ["none", "ends", "both", "keys", "queries"])
    case.fed(normal(random, 2, batch, heads, past, widths[0] // heads)) if has_past else case.absent()
    if not has_past and flag(random):
        case.fed(normal(random, batch if flag(random) else 1, heads if flag(random) else 1, length, length))
    case.attributes |= {"num_heads": heads, "unidirectional": flag(random)}
    if random.random() < 0.3:
        case.attributes["scale"] = 0.75
    case.outputs = 2 if has_past else 1


def multi_head_attention(case: Case) -> None:
    random = case.random
    batch, queries, keys, heads = *sizes(random, 3, 2, 5), int(random.integers(1, 4))
    keys = queries if flag(random) else keys
    size, v_size = sizes(random, 2, 1, 4)
    form = random.choice(["flat", "heads", "past"])
    past = int(random.integers(1, 4)) if form == "past" else 0
    v_size = v_size if form == "flat" else size
    case.fed(normal(random, batch, queries, heads * size))
    if form == "heads":
        case.fed(normal(random, batch, heads, keys, size))
        case.fed(normal(random, batch, heads, keys, v_size))
        case.absent()
    else:
        case.fed(normal(random, batch, keys, heads * size))
        case.fed(normal(random, batch, keys, heads * v_size))
        perhaps(case, normal(random, heads * (2 * size + v_size)))
    key_mask(case, batch, queries, past + keys, ["none", "ends", "keys", "queries"])
    if flag(random):
        case.fed(normal(random, batch if flag(random) else 1, heads if flag(random) else 1, queries, past + keys))
    else:
        case.absent()
    if past:
        case.fed(normal(random, batch, heads, past, size))
        case.fed(normal(random, batch, heads, past, v_size))
    # With fewer queries than keys ONNX Runtime lets the last query see all of them.
    case.attributes |= {"num_heads": heads, "unidirectional": int(queries == keys and flag(random))}
    if random.random() < 0.3:
        case.attributes["scale"] = 0.75
    case.outputs = 3 if past or (form == "flat" and flag(random)) else 1


def angles(random: Random, places: int, pairs: int) -> tuple[Array, Array]:
    angle = random.uniform(0, 6, (places, pairs))
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def group_query_attention(case: Case) -> None:
    random = case.random
    groups, ratio, size = int(random.integers(1, 3)), int(random.integers(1, 4)), 16
    heads = groups * ratio
    form = random.choice(["prompt", "step", "chunk", "ragged"])
    batch = 1 if form == "chunk" else int(random.integers(1, 4))
    queries = 1 if form in ("step", "ragged") else int(random.integers(2, 6))
    ends = np.full(batch, queries if form == "prompt" else queries + int(random.integers(1, 5)))
    if form == "ragged":
        ends = random.integers(2, 8, batch)
    total = int(ends.max())
    past = 0 if form == "prompt" else total - queries
    if form != "prompt" and flag(random):
        past = total + int(random.integers(0, 4))  # a cache with room to spare
    if flag(random):
        case.fed(normal(random, batch, queries, (heads + 2 * groups) * size))
        case.absent()
        case.absent()
    else:
        case.fed(normal(random, batch, queries, heads * size))
        case.fed(normal(random, batch, queries, groups * size))
        case.fed(normal(random, batch, queries, groups * size))
    for _ in range(2):
        case.fed(normal(random, batch, groups, past, size)) if past else case.absent()
    case.fed((ends - 1).astype(np.int32))
    case.either(np.array(total, np.int32))
    rotary = flag(random)
    for table in angles(random, 16, size // 2):
        case.constant(table) if rotary else case.absent()
    if rotary and random.random() < 0.3:
        case.fed((np.arange(queries) + ends[:, None] - queries + 1).astype(np.int64))
    else:
        case.absent()
    if random.random() < 0.3:
        case.fed(normal(random, batch if flag(random) else 1, heads if flag(random) else 1, queries, total))
    else:
        case.absent()
    sink = random.random() < 0.25
    case.constant(normal(random, heads)) if sink else case.absent()
    case.attributes |= {
        "num_heads": heads,
        "kv_num_heads": groups,
        "do_rotary": rotary,
        "rotary_interleaved": flag(random),
        "local_window_size": int(random.choice([-1, -1, 2, 3])),
        "smooth_softmax": int(not sink and random.random() < 0.25),
        "softcap": float(random.choice([0.0, 0.0, 1.5])),
    }
    if random.random() < 0.3:
        case.attributes["scale"] = 0.5
    case.outputs = 3


def rotary(case: Case) -> None:
    random = case.random
    batch, length, heads = sizes(random, 3, 1, 4)
    size = 2 * int(random.integers(2, 5))
    turned = 2 * int(random.integers(1, size // 2 + 1)) if flag(random) else 0
    flat = flag(random)
    case.fed(normal(random, batch, length, heads * size) if flat else normal(random, batch, heads, length, size))
    case.fed(np.array([3], np.int64) if flag(random) else random.integers(0, 12, (batch, length)).astype(np.int64))
    for table in angles(random, 16, (turned or size) // 2):
        case.constant(table)
    case.attributes |= {"interleaved": flag(random), "num_heads": heads if turned else 0}
    case.attributes |= {"rotary_embedding_dim": turned}


def triangle(case: Case) -> None:
    random = case.random
    case.fed(normal(random, *shape_of(random, int(random.integers(2, 4)))))
    perhaps(case, np.array(int(random.integers(-3, 4)), np.int64))
    case.attributes["upper"] = flag(random)


def inverse(case: Case) -> None:
    random = case.random
    n = int(random.integers(1, 7))
    dtype = np.float64 if flag(random) else np.float32
    value = random.normal(size=(*shape_of(random, int(random.integers(0, 3)), 3), n, n))
    case.fed((value + 2 * np.roll(np.eye(n), 1, 0)).astype(dtype))


def grid_sample(case: Case) -> None:
    random = case.random
    batch, channels, height, width, rows, columns = sizes(random, 6, 2, 5)
    case.fed(normal(random, batch, channels, height, width))
    case.fed(random.uniform(-1.4, 1.4, (batch, rows, columns, 2)).astype(np.float32))
    case.attributes |= {
        "mode": str(random.choice(["bilinear", "nearest", "bicubic"])),
        "padding_mode": str(random.choice(["zeros", "border", "reflection"])),
        "align_corners": flag(random),
    }


def expand_dims(case: Case) -> None:
    random = case.random
    rank = int(random.integers(1, 4))
    case.fed(normal(random, *shape_of(random, rank)))
    case.constant(np.array(int(random.integers(-rank - 1, rank + 1)), np.int32))


def crop_and_resize(case: Case) -> None:
    random = case.random
    batch, channels, height, width = sizes(random, 4, 2, 6)
    boxes = int(random.integers(1, 4))
    case.fed(normal(random, batch, channels, height, width))
    case.fed(random.uniform(-0.2, 1.2, (boxes, 4)).astype(np.float32))
    case.fed(random.integers(0, batch, boxes).astype(np.int32))
    case.constant(np.array(sizes(random, 2, 1, 5), np.int32))
    case.attributes |= {"mode": str(random.choice(["bilinear", "nearest"])), "extrapolation_value": 0.5}


def floats(random: Random, *shape: int) -> list[float]:
    return [float(value) for value in normal(random, *shape).ravel()]


def kernel(case: Case) -> None:
    random = case.random
    case.attributes |= {
        "kernel_type": str(random.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])),
        "kernel_params": [0.25, 0.5, float(random.choice([2.0, 3.0]))],
    }


def features(case: Case, rows: int, count: int) -> None:
    dtype = case.random.choice(np.array([np.float32, np.float64, np.int64, np.int32]))
    case.fed((case.random.normal(size=(rows, count)) * 2).astype(dtype))


def svm_regressor(case: Case) -> None:
    random = case.random
    rows, count, vectors = sizes(random, 3, 1, 5)
    case.fed(normal(random, rows, count))
    kernel(case)
    linear = random.random() < 0.25
    case.attributes |= {
        "n_supports": 0 if linear else vectors,
        "coefficients": floats(random, count if linear else vectors),
        "rho": floats(random, 1),
        "one_class": flag(random),
        "post_transform": "NONE",
    }
    if linear:
        case.attributes["kernel_type"] = "LINEAR"
    else:
        case.attributes["support_vectors"] = floats(random, vectors, count)


def svm_classifier(case: Case) -> None:
    random = case.random
    rows, count, classes = *sizes(random, 2, 2, 5), int(random.integers(2, 5))
    features(case, rows, count)
    kernel(case)
    pairs, probable = classes * (classes - 1) // 2, flag(random)
    case.attributes |= {
        "classlabels_ints": [5 + 2 * i for i in range(classes)],
        "post_transform": str(random.choice(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])),
    }
    if random.random() < 0.25:
        weights = normal(random, classes, count)
        case.attributes |= {
            "coefficients": [float(w) for w in (np.abs(weights) if flag(random) else weights).ravel()],
            "rho": floats(random, 1),
        }
    else:
        by_class = sizes(random, classes, 1, 3)
        case.attributes |= {
            "vectors_per_class": by_class,
            "support_vectors": floats(random, sum(by_class), count),
            "coefficients": floats(random, classes - 1, sum(by_class)),
            "rho": floats(random, pairs),
        }
        if probable:
            case.attributes |= {"prob_a": [-abs(a) for a in floats(random, pairs)], "prob_b": floats(random, pairs)}
    case.outputs = 2


def one_hot_encoder(case: Case) -> None:
    random = case.random
    categories = [int(c) for c in random.permutation(8)[: int(random.integers(1, 7))]]
    dtype = random.choice(np.array([np.int64, np.float32, np.float64]))
    zeros = flag(random)
    values = (
        random.integers(-1, 9, shape_of(random, int(random.integers(1, 3))))
        if zeros
        else random.choice(np.array(categories), shape_of(random, 2))
    )
    case.fed(values.astype(dtype))
    case.attributes |= {"cats_int64s": categories, "zeros": zeros}


FUSED: dict[str, Callable[[Case], None]] = {
    "Attention": attention,
    "BiasGelu": activation,
    "CropAndResize": crop_and_resize,
    "EmbedLayerNormalization": embedding_norm,
    "ExpandDims": expand_dims,
    "FastGelu": activation,
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "Gelu": activation,
    "GridSample": grid_sample,
    "GroupQueryAttention": group_query_attention,
    "Inverse": inverse,
    "MultiHeadAttention": multi_head_attention,
    "QuickGelu": activation,
    "RotaryEmbedding": rotary,
    "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_norm,
    "TransposeMatMul": fused_matmul,
    "Trilu": triangle,
    "ai.onnx.ml.OneHotEncoder": one_hot_encoder,
    "ai.onnx.ml.SVMClassifier": svm_classifier,
    "ai.onnx.ml.SVMRegressor": svm_regressor,
    "onnx.SimplifiedLayerNormalization": rms_norm,
}
