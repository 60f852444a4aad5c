# SPDX-License-Identifier: MIT
"""The table FORMS: ATen operators that have layers of their own in a network of dlprim (docs/json.md), by family.

A form is a function of the builder and of the operator's arguments, by the names of its schema. It takes those that it
needs and returns the name of the result, a list of several, or None where only rows.yaml knows the call. What has no
form is a row of rows.yaml. Gradients, which only graphs of torch.compile have, stand behind what they are of.
"""

from . import (  # noqa: F401  # each fills the table
    attention,
    convolutions,
    images,
    indices,
    losses,
    made,
    moves,
    norms,
    pointwise,
    pooling,
    products,
    random,
    sums,
)
from .table import FORMS

__all__ = ["FORMS"]
