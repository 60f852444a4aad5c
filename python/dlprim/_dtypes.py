# SPDX-License-Identifier: MIT
"""What numpy does not know of element types: bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def itemsize(dtype: str) -> int:
    """Bytes of an element, of a type by its name in dlprim."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def widened(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """float32 of bfloat16's bits as uint16, exactly: they are the upper half of a float's."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
