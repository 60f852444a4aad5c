#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes onnx_quantized.h5 and onnx_fused.h5: what ONNX Runtime computes for models of com.microsoft's quantised operators, and
of those that optimisers and exporters of scikit-learn write (onnx_fused_cases.py).

    python3 tests/golden/make_onnx_golden.py                          writes the files
    python3 tests/golden/make_onnx_golden.py --compare 40 [TYPE ...]  compares the module dlprim with ONNX Runtime instead, over 40
                                                                      random models for each type, on DLPRIM_DEVICE or the host

A case is a group TYPE.NUMBER: `model` has the bytes of the file, `inputs/NAME` and `outputs/NAME` the tensors. The data lies in the
file, so that the tests need neither ONNX Runtime nor the same random numbers. Needs onnx, onnxruntime, numpy and h5py.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx_case import Array, Case, Random, byte_type, bytes_of, shape_of
from onnx_fused_cases import FUSED

HERE = pathlib.Path(__file__).resolve().parent
PER_TYPE = 6


def two_operands(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    shape = shape_of(random, int(random.integers(1, 5)), 7)
    other = [1 if random.random() < 0.3 else size for size in shape]
    case.quantized(shape, dtype)
    case.quantized(tuple(other[int(random.integers(0, len(shape))) :]), dtype)
    case.scale()
    case.zero(dtype)


def one_operand(case: Case) -> None:
    dtype = byte_type(case.random)
    case.quantized(shape_of(case.random, 3, 8), dtype)
    case.scale()
    case.zero(dtype)
    if case.kind == "QLinearLeakyRelu":
        case.attributes["alpha"] = float(np.float32(case.random.uniform(0, 0.5)))


def choice(case: Case) -> None:
    dtype, shape = byte_type(case.random), shape_of(case.random, 3)
    case.fed(case.random.random(shape) < 0.5)
    case.quantized(shape, dtype)
    case.quantized((1, *shape[1:]), dtype)
    case.scale()
    case.zero(dtype)


def concatenation(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    rank = int(random.integers(1, 5))
    axis, shape = int(random.integers(-rank, rank)), list(shape_of(random, rank))
    case.scale()
    case.zero(dtype)
    for _ in range(int(random.integers(1, 4))):
        shape[axis] = int(random.integers(1, 5))
        case.quantized(tuple(shape), dtype)
    case.attributes["axis"] = axis


def shares(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    rank = int(random.integers(2, 5))
    case.quantized(shape_of(random, rank, 6), dtype)
    case.constant(np.float32(1 / 256))
    # With int8's zero point of -128 ONNX Runtime's share of 1 overflows; it is no case.
    case.constant(np.zeros((), np.uint8) if dtype == np.uint8 else np.int8(-130 + 2))
    case.attributes |= {"axis": int(random.integers(-rank, rank)), "opset": int(random.choice([11, 13]))}


def pooling(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    dims = int(random.integers(1, 3))
    last = random.random() < 0.3
    image = tuple(int(size) for size in random.integers(4, 9, dims))
    outer = shape_of(random, 2, 3)
    case.quantized((outer[0], *image, outer[1]) if last else (*outer, *image), dtype)
    case.scale(0.01, 0.1)
    case.zero(dtype)
    kernel = [int(size) for size in random.integers(1, 4, dims)]
    case.attributes |= {
        "kernel_shape": kernel,
        "strides": [int(size) for size in random.integers(1, 3, dims)],
        "pads": [int(random.integers(0, size)) for size in [*kernel, *kernel]],
        "count_include_pad": int(random.integers(0, 2)),
        "channels_last": int(last),
    }


def largest(case: Case) -> None:
    random = case.random
    case.fed(bytes_of(random, (2, *shape_of(random, 2, 4), 3), byte_type(random)).repeat(2, 1).repeat(2, 2))
    kernel = [int(size) for size in random.integers(1, 3, 2)]
    case.attributes |= {"kernel_shape": kernel, "strides": [int(size) for size in random.integers(1, 3, 2)]}


def convolution(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    last, groups = random.random() < 0.7, int(random.integers(1, 3))
    channels, out = (groups * int(size) for size in random.integers(1, 5, 2))
    case.quantized((2, 6, 5, channels) if last else (2, channels, 6, 5), dtype)
    kernel = [int(size) for size in random.integers(1, 4, 2)]
    case.constant(bytes_of(random, (out, channels // groups, *kernel), np.int8))
    case.constant(random.uniform(0.003, 0.01, (out,) if random.random() < 0.5 else ()).astype(np.float32))
    case.constant(np.zeros((), np.int8))
    case.scale(0.5, 2)
    case.zero(dtype)
    if random.random() < 0.5:
        case.constant(random.integers(-3000, 3000, out).astype(np.int32))
    case.attributes |= {"channels_last": int(last), "group": groups, "kernel_shape": kernel, "pads": [1, 0, 1, 0]}


def whole_pooling(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    last = random.random() < 0.3
    case.quantized(shape_of(random, int(random.integers(3, 6)), 7), dtype)
    case.scale(0.01, 0.1)
    case.zero(dtype)
    case.attributes["channels_last"] = int(last)


def by_column(random: Random, columns: int, dtype: Any) -> tuple[Array, Array]:
    """Scale and zero point of a right factor: one, or one for each column."""
    shape = (columns,) if random.random() < 0.5 else ()
    scale = np.exp(random.uniform(-6, -2, shape)).astype(np.float32)
    return scale, bytes_of(random, shape, dtype)


def gemm(case: Case) -> None:
    random = case.random
    left, right = random.choice(np.array([[np.uint8, np.uint8], [np.uint8, np.int8], [np.int8, np.int8]]))
    m, n, k = (int(size) for size in random.integers(1, 40, 3))
    turns_a, turns_b = (int(turn) for turn in random.integers(0, 2, 2))
    case.quantized((k, m) if turns_a else (m, k), left)
    scale, zero = by_column(random, n, right)
    case.either(bytes_of(random, (n, k) if turns_b else (k, n), right))
    case.constant(scale)
    case.constant(zero)
    bias = random.integers(-5000, 5000, [(n,), (m, n), (m, 1), (1, n)][int(random.integers(0, 4))]).astype(np.int32)
    case.constant(bias) if random.random() < 0.6 else case.absent()
    if random.random() < 0.6:
        case.scale(1, 20)
        case.zero(left)
    case.attributes |= {"transA": turns_a, "transB": turns_b, "alpha": float(random.choice([1.0, 0.5]))}


def integers_to_float(case: Case) -> None:
    random = case.random
    left, right = byte_type(random), byte_type(random)
    if left == np.int8:
        right = np.int8
    m, n, k = (int(size) for size in random.integers(1, 40, 3))
    scale, zero = by_column(random, n, right)
    case.fed(bytes_of(random, (2, m, k), left))
    case.either(bytes_of(random, (k, n), right))
    case.scale()
    case.constant(scale)
    case.zero(left, True)
    case.constant(zero) if random.random() < 0.7 else case.absent()
    case.constant(random.normal(size=n).astype(np.float32)) if random.random() < 0.5 else case.absent()


def dynamic_product(case: Case) -> None:
    random, right = case.random, byte_type(case.random)
    m, n, k = (int(size) for size in random.integers(1, 40, 3))
    scale, zero = by_column(random, n, right)
    case.fed(random.normal(size=(2, m, k)).astype(np.float32))
    case.either(bytes_of(random, (k, n), right))
    case.constant(scale)
    case.constant(zero) if random.random() < 0.7 else case.absent()
    case.constant(random.normal(size=n).astype(np.float32)) if random.random() < 0.5 else case.absent()


def packed_product(case: Case) -> None:
    random = case.random
    bits, block = int(random.choice([4, 8])), int(random.choice([16, 32, 64]))
    n, k = int(random.integers(1, 20)), int(random.integers(1, 150))
    blocks = -(-k // block)
    case.fed(random.normal(size=(2, 3, k)).astype(np.float32))
    case.constant(bytes_of(random, (n, blocks, block * bits // 8), np.uint8))
    case.constant(np.exp(random.uniform(-5, -3, n * blocks)).astype(np.float32))
    kind = random.choice(["none", "packed", "float"])
    if kind == "packed":
        case.constant(bytes_of(random, (n * -(-blocks * bits // 8),), np.uint8))
    elif kind == "float" and bits == 4:
        case.constant(random.uniform(0, 2**bits - 1, n * blocks).astype(np.float32))
    else:
        case.absent()
    # ONNX Runtime takes the group of eight places from the first of a block, and no zero points beside groups.
    groups = (np.arange(blocks * block) // block)[::-1].astype(np.int32)
    case.constant(groups.copy()) if bits == 4 and kind == "none" and random.random() < 0.5 else case.absent()
    case.constant(random.normal(size=n).astype(np.float32)) if random.random() < 0.4 else case.absent()
    case.attributes |= {"K": k, "N": n, "bits": bits, "block_size": block}


def stored_product(case: Case) -> None:
    """Weights that the library's blocks hold exactly."""
    random = case.random
    bits, block = int(random.choice([4, 8])), int(random.choice([32, 64, 128, 256]))
    n, k = int(random.integers(1, 20)), 32 * int(random.integers(1, 9))
    blocks = -(-k // block)
    case.fed(random.normal(size=(2, 3, k)).astype(np.float32))
    case.constant(bytes_of(random, (n, blocks, block * bits // 8), np.uint8))
    case.constant(np.exp(random.uniform(-5, -3, n * blocks)).astype(np.float16).astype(np.float32))
    if bits == 4 and random.random() < 0.6:
        case.constant(bytes_of(random, (n * -(-blocks * bits // 8),), np.uint8))
    case.attributes |= {"K": k, "N": n, "bits": bits, "block_size": block}


def packed_rows(case: Case) -> None:
    random = case.random
    packed = random.random() < 0.6
    bits = int(random.choice([4, 8])) if packed else 4
    block, width, rows = int(random.choice([16, 32])), 2 * int(random.integers(4, 40)), int(random.integers(2, 8))
    blocks = -(-width // block)
    gathered, quantized = (0, 1) if packed else [(0, 1), (1, 0), (0, 2), (2, 1)][int(random.integers(0, 4))]
    rank = 2 if packed else 3
    shape = [3] * rank
    shape[gathered], shape[quantized] = rows, width
    scales = list(shape)
    scales[quantized] = blocks
    if packed:
        case.constant(bytes_of(random, (rows, width * bits // 8), np.uint8))
    else:
        kind = random.choice([onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
        low = -8 if kind == onnx.TensorProto.INT4 else 0
        case.constant(helper.make_tensor("", int(kind), shape, random.integers(low, low + 16, shape).ravel()))
    case.fed(
        random.integers(-rows, rows, shape_of(random, int(random.integers(1, 3)))).astype(
            random.choice(np.array([np.int32, np.int64]))
        )
    )
    case.constant(random.uniform(0.01, 0.2, scales).astype(np.float32))
    if random.random() < 0.5:
        if packed:
            case.constant(bytes_of(random, (rows, -(-blocks * bits // 8)), np.uint8))
        else:
            case.constant(helper.make_tensor("", int(kind), scales, random.integers(low, low + 16, scales).ravel()))
    case.attributes |= {"bits": bits, "block_size": block, "gather_axis": gathered, "quantize_axis": quantized}


def recurrence(case: Case) -> None:
    random, dtype = case.random, byte_type(case.random)
    steps, features, hidden = (int(size) for size in random.integers(2, 8, 3))
    direction = random.choice(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    case.fed(random.normal(size=(steps, 1, features)).astype(np.float32))
    for rows in (features, hidden):
        case.constant(bytes_of(random, (directions, rows, 4 * hidden), dtype))
    optional: list[tuple[int, ...]] = [
        (directions, 8 * hidden),
        (0,),
        (directions, 1, hidden),
        (directions, 1, hidden),
        (directions, 3 * hidden),
    ]
    for shape in optional:
        if shape == (0,) or random.random() < 0.4:
            case.absent()
        else:
            case.constant(random.normal(size=shape).astype(np.float32) / 2)
    columns = random.random() < 0.5
    for _ in range(2):
        case.constant(
            random.uniform(0.003, 0.01, (directions, 4 * hidden) if columns else (directions,)).astype(np.float32)
        )
        zero = np.full((directions, 4 * hidden) if columns else (directions,), 0 if dtype == np.int8 else 120, dtype)
        case.constant(zero)
    case.attributes |= {"direction": str(direction), "hidden_size": hidden}
    case.outputs = 3


def attention(case: Case) -> None:
    random = case.random
    batch, length, heads, size, features = 2, int(random.integers(2, 6)), int(random.integers(1, 4)), 4, 5
    width, past = heads * size, int(random.integers(1, 4)) if random.random() < 0.4 else 0
    case.fed(bytes_of(random, (batch, length, features), np.uint8))
    dtype = byte_type(random)
    columns: tuple[int, ...] = (3 * width,) if random.random() < 0.5 else ()
    case.constant(bytes_of(random, (features, 3 * width), dtype))
    case.constant(random.normal(size=3 * width).astype(np.float32))
    case.scale(0.005, 0.02)
    case.constant(random.uniform(0.002, 0.01, columns).astype(np.float32))
    mask = random.choice(["none", "lengths", "keys"])
    if mask == "lengths" and not past:
        case.constant(random.integers(1, length + 1, batch).astype(np.int32))
    elif mask == "keys":
        case.constant(random.integers(0, 2, (batch, past + length)).astype(np.int32))
    else:
        case.absent()
    case.constant(np.uint8(random.integers(100, 150)))
    case.constant(bytes_of(random, columns, dtype))
    if past:
        case.fed(random.normal(size=(2, batch, heads, past, size)).astype(np.float32))
        case.outputs = 2
    case.attributes |= {"num_heads": heads, "unidirectional": int(random.integers(0, 2))}


def quantization(case: Case) -> None:
    random = case.random
    dtype = random.choice(np.array([np.uint8, np.int8, np.uint16, np.int16]))
    shape = shape_of(random, 3)
    axis = int(random.integers(0, 3))
    lengths: tuple[int, ...] = (shape[axis],) if random.random() < 0.5 else ()
    if lengths:
        case.attributes["axis"] = axis
    if case.kind == "QuantizeLinear":
        case.fed((random.normal(size=shape) * 20).astype(np.float32))
    else:
        case.fed(bytes_of(random, shape, dtype))
    case.constant(random.uniform(0.01, 0.2, lengths).astype(np.float32))
    case.constant(bytes_of(random, lengths, dtype))


QUANTIZED: dict[str, Callable[[Case], None]] = {
    "DequantizeLinear": quantization,
    "DynamicQuantizeLSTM": recurrence,
    "DynamicQuantizeMatMul": dynamic_product,
    "GatherBlockQuantized": packed_rows,
    "MatMulIntegerToFloat": integers_to_float,
    "MatMulNBits": packed_product,
    "com.microsoft.MatMulNBits": stored_product,
    "NhwcMaxPool": largest,
    "QAttention": attention,
    "QGemm": gemm,
    "QLinearAdd": two_operands,
    "QLinearAveragePool": pooling,
    "QLinearConcat": concatenation,
    "QLinearConv": convolution,
    "QLinearGlobalAveragePool": whole_pooling,
    "QLinearLeakyRelu": one_operand,
    "QLinearMul": two_operands,
    "QLinearSigmoid": one_operand,
    "QLinearSoftmax": shares,
    "QLinearWhere": choice,
    "QuantizeLinear": quantization,
}


FILES = {"onnx_quantized.h5": QUANTIZED, "onnx_fused.h5": FUSED}
TYPES = QUANTIZED | FUSED


def make_case(kind: str, number: int) -> tuple[bytes, dict[str, Array]]:
    case = Case(kind, np.random.default_rng([zlib.crc32(kind.encode()), number]))
    TYPES[kind](case)
    return case.model(), case.feeds


def expected(model: bytes, feeds: dict[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def write() -> None:
    import h5py

    for name, kinds in FILES.items():
        with h5py.File(HERE / name, "w", libver="latest") as file:
            for kind in kinds:
                for number in range(PER_TYPE):
                    write_case(file.create_group(f"{kind}.{number}"), *make_case(kind, number))


def write_case(group: Any, model: bytes, feeds: dict[str, Array]) -> None:
    group["model"] = np.frombuffer(model, np.uint8)
    for folder, tensors in (("inputs", feeds), ("outputs", expected(model, feeds))):
        for name, value in tensors.items():
            group[f"{folder}/{name}"] = value.astype(np.uint8) if value.dtype == np.bool_ else value


def compare(count: int, kinds: list[str]) -> int:
    """Prints a line for each type: how many models differ, and the largest difference. Integers must be equal."""
    import dlprim

    context = dlprim.Context(os.environ.get("DLPRIM_DEVICE", "cpu"))
    differing = 0
    for kind in kinds or TYPES:
        bad, worst = 0, 0.0
        for number in range(count):
            model, feeds = make_case(kind, number)
            try:
                wanted = expected(model, feeds)
            except Exception as error:  # ONNX Runtime refuses some combinations
                print(f"  {kind}.{number}: ONNX Runtime: {str(error).splitlines()[0][:150]}")
                continue
            try:
                made = dlprim.ONNXSession(context, model).run(feeds)
            except dlprim.DlprimError as error:
                bad += 1
                print(f"  {kind}.{number}: {error}")
                continue
            for name, value in wanted.items():
                result = np.asarray(made[name])
                assert result.shape == value.shape and result.dtype == value.dtype, (
                    kind,
                    number,
                    result.shape,
                    value.shape,
                )
                difference = np.abs(result.astype(np.float64) - value.astype(np.float64)).max(initial=0)
                limit = 0 if value.dtype.kind in "ui" else 1e-4 * np.abs(value).max(initial=0)
                if difference > limit:
                    bad += 1
                    elements = int((np.abs(result.astype(np.float64) - value.astype(np.float64)) > limit).sum())
                    print(f"  {kind}.{number} {name}: {elements} of {value.size} elements differ by up to {difference}")
                worst = max(worst, float(difference))
        print(f"{kind}: {bad} of {count} differ, by {worst} at most")
        differing += bad
    return int(differing > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", type=int, metavar="N")
    parser.add_argument("types", nargs="*")
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare, arguments.types)
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
