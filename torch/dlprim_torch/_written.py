# SPDX-License-Identifier: MIT
"""Views as layers that move elements, for a layer that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import sympy  # type: ignore[import-untyped]
import torch

from ._views import View, view_of

if TYPE_CHECKING:
    from ._builder import Builder


def written(b: Builder, view: View) -> str:
    """The name of a view's tensor, which layers make."""
    name, cuts, sizes = view.base, [list(cut) for cut in view.cuts], [view.size(cut) for cut in view.cuts]
    atoms = [atom for group in view.groups for atom in group]
    moved = atoms != [atom for atom in view.order if atom not in view.fixed]
    few = {atom for atom in view.fixed if moved and view.sizes[atom] <= 4}  # of which others are likely read, too
    for dim, cut in enumerate(cuts):
        while cut and cut[0] in view.fixed and cut[0] not in few:
            inner = view.size(cut[1:])
            begin = view.fixed[cut.pop(0)] * inner
            name = b.kept("Slice", name, {"dim": dim, "begin": begin, "end": begin + inner})
            sizes[dim] = inner
    inside = [atom for cut in cuts for atom in cut if atom in view.fixed]
    places = [atom for cut in cuts for atom in cut]
    wanted = inside + atoms if moved else places
    runs = runs_of(wanted, places, set(inside))
    rising = sorted(runs, key=lambda run: places.index(run[0]))
    name = b.reshape(name, sizes, [view.size(run) for run in rising])
    order = [rising.index(run) for run in runs]
    if order != sorted(order):
        name = b.kept("Transpose", name, {"dims": order})
    sizes = [view.size(run) for run in runs]
    for atom in inside:
        dim = runs.index([atom])
        name = b.kept("Slice", name, {"dim": dim, "begin": view.fixed[atom], "end": view.fixed[atom] + 1})
        sizes[dim] = sympy.Integer(1)
    return b.reshape(name, sizes, [view.size(group) for group in view.groups])


def runs_of(wanted: Sequence[int], places: Sequence[int], alone: set[int]) -> list[list[int]]:
    """The atoms in their order, with those joined that stand side by side before and behind."""
    runs: list[list[int]] = []
    for atom in wanted:
        at = places.index(atom)
        joined = runs and at > 0 and places[at - 1] == runs[-1][-1]
        if joined and atom not in alone and runs[-1][-1] not in alone:
            runs[-1].append(atom)
        else:
            runs.append([atom])
    return runs


def rows(b: Builder, node: torch.fx.Node) -> tuple[str, Callable[[str, Any], Any]]:
    """A tensor for a layer that treats each row by itb, and what makes the node's view of its result.

    The rows are in the order of the view's base, which needs no copy where only they have changed places.
    """
    view = b.view(node)
    leading = [atom for group in view.groups[:-1] for atom in group]
    order = [atom for atom in view.order if atom in leading]
    if view.fixed or leading == order:
        return b.tensor(node), lambda name, features: name
    name = written(b, view._replace(groups=[[atom] for atom in order] + view.groups[-1:]))

    def again(result: str, features: Any) -> View:
        found = view_of(result, [*(view.sizes[atom] for atom in order), features])
        place = {atom: i for i, atom in enumerate(order)}
        groups = [[place[atom] for atom in group] for group in view.groups[:-1]]
        return found._replace(groups=[*groups, found.groups[-1]])

    return name, again
