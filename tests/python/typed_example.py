# SPDX-License-Identifier: MIT
"""A program whose types test_typing.py has mypy check; it is not run."""

from __future__ import annotations

import dlprim
import numpy as np
import numpy.typing as npt

context: dlprim.Context = dlprim.Context("cpu")
names: list[str] = [info.name for info in dlprim.devices()]
array: npt.NDArray[np.float32] = np.zeros((2, 3), dtype=np.float32)
tensor: dlprim.Tensor = dlprim.Tensor(context, array)
include: str = dlprim.get_include()
