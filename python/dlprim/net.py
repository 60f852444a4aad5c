# SPDX-License-Identifier: MIT
"""Net: a network on one device, built from JSON; describe(): what one is made of."""

from __future__ import annotations

import contextlib
import os
import pathlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Union

from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arguments import offers_names
from ._core import NetworkDescription, NodeReport, OperatorDescription, ParamDescription, TensorDescription
from ._source import JsonSource, json_source
from .plot import Shown
from .summary import LayerRecord, records_of

__all__ = [
    "Net",
    "NetworkDescription",
    "NodeReport",
    "OperatorDescription",
    "ParamDescription",
    "TensorDescription",
    "describe",
]

Pairs = Union[Mapping[str, str], Iterable[tuple[str, str]]]
Progress = Callable[[str, int, int], object]


class Net(Shown, _core.Net):
    """A network on one device: runs forward and backward, loads and saves weights.

    Several threads may call nets of one Context: calls are serialised. Long calls let other Python
    threads run, and end with KeyboardInterrupt at Ctrl-C, after which the net may be used.

    Args:
        context: the device.
        source: network JSON (docs/json.md) as a text, a dict, or a path: a str that ends in ".json" or ".onnx", or
            an os.PathLike. A path that ends in ".onnx" is an ONNX model's (from_onnx()).
        mode: "training": batch statistics and dropout; backward() and solvers work. "evaluation":
            inference's mathematics, but backward() works. "inference": running statistics, batch norms
            folded, nothing kept.
        batch: replaces the first dimension of every input; 0: as declared.
        input_shapes: replaces whole shapes, by input.
        extra_outputs: intermediate tensors to keep readable.
        input_gradients: backward() also computes gradients of float inputs.
        output_gradients: backward() starts from output_gradient() tensors that the caller fills.
        without_losses: drops losses, and what only they need, where there are other outputs.
        backward: False: training-mode forward alone.
        fuse: whether operators may share a kernel.
        engines: forced engines, by operator name or type: a dict or pairs.
        precision: "fp32", "tf32", "fp16" or "bf16", of operators that the network gives none.
        precisions: the same by operator name or type: a dict or pairs; the last of a name counts.
        keep_parameters: inference: keeps parameters on the device beside what is packed of them.
        memory_limit: bytes of device memory that a plan may take; 0: the device's. Training recomputes tensors in
            backward where that makes it fit, with the same bits; notes() says what that costs.
        max_plans: how many plans, one per set of input shapes, the net keeps at most, at least 1. Beyond eight it
            keeps only as many as take no more than half of the device's memory.
        seed: of initialisation and dropout.
        tune_seconds: above 0: planning first measures engines for about so many seconds.
        progress: called as progress(what, done, total) while the net plans, compiles, tunes and
            profiles. What it raises ends the call and arrives at the caller.

    Raises:
        FormatError: the JSON is damaged.
        InvalidArgumentError: operators, options or shapes make no sense.
        MissingFileError: there is no file at the path.
    """

    @offers_names
    def __init__(
        self,
        context: _core.Context,
        source: JsonSource,
        mode: str = "training",
        *,
        batch: int = 0,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        extra_outputs: Sequence[str] = (),
        input_gradients: bool = False,
        output_gradients: bool = False,
        without_losses: bool = False,
        backward: bool = True,
        fuse: bool = True,
        engines: Pairs = (),
        precision: str = "fp32",
        precisions: Pairs = (),
        keep_parameters: bool = False,
        memory_limit: int = 0,
        max_plans: int = 512,
        seed: int = 1,
        tune_seconds: float = 0,
        progress: Progress | None = None,
    ) -> None:
        text, is_path = json_source(source, "a network")
        if isinstance(extra_outputs, str):
            raise TypeError("extra_outputs takes a list of strings, not a str")
        options = {
            "mode": mode,
            "batch": batch,
            "input_shapes": dict(input_shapes or {}),
            "extra_outputs": list(extra_outputs),
            "input_gradients": input_gradients,
            "output_gradients": output_gradients,
            "without_losses": without_losses,
            "backward": backward,
            "fuse": fuse,
            "engines": engines,
            "precision": precision,
            "precisions": precisions,
            "keep_parameters": keep_parameters,
            "memory_limit": memory_limit,
            "max_plans": max_plans,
            "seed": seed,
            "tune_seconds": tune_seconds,
            "progress": self._weakly(progress),
        }
        super().__init__(context, text, is_path, options)

    @classmethod
    def from_json(cls, context: _core.Context, source: JsonSource, mode: str = "training", **options: Any) -> Net:
        """Build a net from JSON; the same as Net(context, source, mode, ...), with its options."""
        return cls(context, source, mode, **options)

    @classmethod
    def from_onnx(
        cls, context: _core.Context, path: str | os.PathLike[str], mode: str = "inference", **options: Any
    ) -> Net:
        """Build a net from an ONNX model, with the model's weights (docs/onnx.md).

        The path ends in ".onnx". `options` are those of Net: `batch` and `input_shapes` give sizes that the model
        leaves open. Raises UnsupportedError, which names the node, for what is not supported.
        """
        path = pathlib.Path(path)
        if path.suffix != ".onnx":
            raise ValueError(f"'{path}' does not end in .onnx")
        return cls(context, path, mode, **options)

    def _weakly(self, progress: Progress | None) -> Progress | None:
        """Return `progress` held by this object alone, not by the library: it may refer to the net."""
        if progress is None:
            return None
        if not callable(progress):
            raise TypeError(f"progress takes a callable of (what, done, total), not a {type(progress).__name__}")
        self._progress = progress
        reference = weakref.ref(self)

        def call(what: str, done: int, total: int) -> None:
            net = reference()
            if net is not None:
                net._progress(what, done, total)

        return call

    def _set_inputs(self, arrays: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]) -> None:
        names = self.input_names
        if len(arrays) > len(names):
            raise TypeError(f"the network has {len(names)} inputs, {', '.join(names)}; {len(arrays)} were given")
        for name, array in [*zip(names, arrays), *named.items()]:
            self.set_input(name, array)

    def forward(self, *arrays: ArrayLike, **named: ArrayLike) -> dict[str, _core.Tensor]:
        """Set the inputs that are given, in declared order or by name, and enqueue forward.

        Returns the outputs' own Tensors by name, without waiting: the next forward() writes to them.
        Inputs that are not given keep what they hold. Raises InvalidArgumentError where an input was never set, and
        where parameters have no values: initialize(), load_weights() or set_weights() gives them some.
        """
        if arrays or named:
            self._set_inputs(arrays, named)
        self.enqueue_forward()
        return {name: self.output(name) for name in self.output_names}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the calls of a "with" block one: other threads' calls on nets of this context wait for its end."""
        self.enter_lock()
        try:
            yield
        finally:
            self.leave_lock()

    def run(self, inputs: Mapping[str, ArrayLike] | None = None, **named: ArrayLike) -> dict[str, NDArray[Any]]:
        """Set inputs from a dict or by keyword, run forward, and return copies of the outputs as arrays.

        Threads may share a net by run(): each call is whole before the next on the same context begins.
        """
        if inputs is not None and not isinstance(inputs, Mapping):
            raise TypeError(
                f"run() takes a dict of arrays by input, not a {type(inputs).__name__}; net(array) takes arrays in the "
                "order of input_names"
            )
        with self.locked():
            self._set_inputs((), {**(inputs or {}), **named})
            return {name: tensor.numpy() for name, tensor in self.forward().items()}

    def __call__(self, *arrays: ArrayLike, **named: ArrayLike) -> dict[str, NDArray[Any]]:
        """Run forward on arrays in the order of input_names, or by name; outputs as run() returns them."""
        with self.locked():
            self._set_inputs(arrays, named)
            return self.run()

    def _layers(self) -> list[LayerRecord]:
        return records_of(self.describe())

    def _outputs_shown(self) -> list[str]:
        return self.output_names

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Net cannot be pickled or copied, since it lives on a device: pickle net.weights(), which "
            "set_weights() takes back, or write a file with save_weights()"
        )

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}={self.input_shape(name)}" for name in self.input_names)
        return f"<dlprim.Net on {self.context.info.name}: {self.mode}, inputs {inputs}>"


def describe(source: JsonSource, mode: str = "training", **options: Any) -> NetworkDescription:
    """Describe a network, operator by operator, with shapes; neither device nor memory is needed.

    Args:
        source: as Net takes it.
        mode: as Net takes it.
        options: of Net's those that shapes depend on: batch, input_shapes, extra_outputs, precision,
            precisions.

    Raises: as Net does for what is wrong with the network.
    """
    text, is_path = json_source(source, "a network")
    return _core.describe(text, is_path, {"mode": mode, **options})
