# SPDX-License-Identifier: MIT
"""Element types that numpy lacks: bfloat16, and narrow ones that only store."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

NARROW = frozenset(
    ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
    + ["int4", "uint4", "int2", "uint2"]
)
"""Types of one byte, by their names in ml_dtypes."""


def itemsize(dtype: str) -> int:
    """Bytes of an element. The type is given by its name in dlprim."""
    if dtype == "bfloat16":
        return 2
    return 1 if dtype in NARROW else np.dtype(dtype).itemsize


def widened(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Converts bfloat16 numbers, given by their bits (uint16), to float32. It is exact: only zero bits are added."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
