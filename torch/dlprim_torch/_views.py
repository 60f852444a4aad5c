# SPDX-License-Identifier: MIT
"""Views: tensors whose elements stand elsewhere, in another order.

PyTorch's models move dimensions about (multi-head attention does so a dozen times a layer), which costs it nothing. In
a network each Transpose is a copy. So a chain of views is kept as what it comes to, and is written when a layer reads
it: as one Slice, Reshape, Transpose and Reshape at most.

A dimension of the base is cut into atoms, and a dimension of the view is a row of atoms:

    base [B, T, 3 * H * F]   atoms B, T, 3, H, F
    its second third, as [B, H, T, F]   groups [B] [H] [T] [F], and 3 is fixed at 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy  # type: ignore[import-untyped]
import torch


def expression(size: Any) -> Any:
    """A size as an expression of its symbols."""
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)


def quotient(a: Any, b: Any) -> Any:
    """a / b where that is whole for all values of the symbols, else None."""
    if a.is_Integer and b.is_Integer:
        return a / b if a % b == 0 else None
    found = sympy.cancel(a / b)
    return found if sympy.denom(found) == 1 else None


class View(NamedTuple):
    """The elements of the tensor `base` as a tensor of other dimensions."""

    base: str
    cuts: list[list[int]]  # the atoms of each dimension of the base
    sizes: list[Any]  # of atoms
    fixed: dict[int, int]  # atoms of which the view has one element
    groups: list[list[int]]  # the atoms of each dimension of the view

    @property
    def order(self) -> list[int]:
        """All atoms, as the base has them."""
        return [atom for cut in self.cuts for atom in cut]

    def size(self, group: Sequence[int]) -> Any:
        """The number of elements along a group."""
        return math.prod((self.sizes[atom] for atom in group), start=sympy.Integer(1))

    def permuted(self, order: Sequence[int]) -> View:
        """The view with its dimensions in another order."""
        return self._replace(groups=[self.groups[d] for d in order])

    def selected(self, dim: int, index: int) -> View | None:
        """One element of a dimension; None where that is in no atom of its own."""
        group = self.groups[dim]
        if len(group) > 1:
            return None
        groups = self.groups[:dim] + self.groups[dim + 1 :]
        return self._replace(groups=groups, fixed=self.fixed | {atom: index for atom in group})

    def reshaped(self, sizes: Sequence[Any]) -> View | None:
        """The view in other sizes; None where elements that must part are in no order for that."""
        atoms, cuts = list(self.sizes), [list(cut) for cut in self.cuts]
        pending = [atom for group in self.groups for atom in group]
        groups = []
        for size in map(expression, sizes):
            group = []
            while size != 1:
                if not pending:
                    return None
                left = quotient(size, atoms[pending[0]])
                if left is not None:
                    group.append(pending.pop(0))
                    size = left
                    continue
                inner = quotient(atoms[pending[0]], size)
                if inner is None:
                    return None
                outer = pending[0]
                atoms[outer], pending[0] = size, len(atoms)
                atoms.append(inner)
                next(cut for cut in cuts if outer in cut).insert(self.after(cuts, outer), pending[0])
                group.append(outer)
                size = sympy.Integer(1)
            groups.append(group)
        return None if pending else View(self.base, cuts, atoms, self.fixed, groups)

    @staticmethod
    def after(cuts: list[list[int]], atom: int) -> int:
        """The place behind an atom in its dimension."""
        return next(cut.index(atom) + 1 for cut in cuts if atom in cut)


def view_of(base: str, sizes: Sequence[Any]) -> View:
    """A tensor as a view of itself."""
    found = list(map(expression, sizes))
    atoms = [size for size in found if size != 1]
    numbers = iter(range(len(atoms)))
    cuts = [[next(numbers)] if size != 1 else [] for size in found]
    return View(base, cuts, atoms, {}, [list(cut) for cut in cuts])
