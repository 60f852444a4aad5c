# SPDX-License-Identifier: MIT
"""Element types that numpy lacks: bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def itemsize(dtype: str) -> int:
    """Bytes of an element. The type is given by its name in dlprim."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def widened(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Converts bfloat16 numbers, given by their bits (uint16), to float32. It is exact: only zero bits are added."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
