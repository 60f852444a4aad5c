# SPDX-License-Identifier: MIT
"""The cases of test_ops.py and test_nn_operators.py: calls of each function of dlprim.ops, a module for each idea."""

from __future__ import annotations

from .activations import ACTIVATIONS
from .case import Case, convert
from .elementwise import ELEMENTWISE
from .images import IMAGES_ND, POOLING
from .indexing import INDEXING
from .norms import NORMS
from .products import PRODUCTS
from .scans import SCANS
from .sequences import SEQUENCES
from .shapes import SHAPES

__all__ = ["CASES", "Case", "convert"]

CASES = [
    *PRODUCTS,
    *POOLING,
    *IMAGES_ND,
    *ACTIVATIONS,
    *NORMS,
    *ELEMENTWISE,
    *SHAPES,
    *INDEXING,
    *SCANS,
    *SEQUENCES,
]
