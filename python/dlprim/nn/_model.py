# SPDX-License-Identifier: MIT
"""Model and Sequential: networks that are collected from symbols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from ..errors import InvalidArgumentError
from ..plot import Shown
from ..summary import LayerRecord, ParamRecord, TensorRecord, count_params
from ._graph import Call, Layer, Symbol, check_name, describe_value, same_labels
from ._layers import SoftmaxWithLoss

if TYPE_CHECKING:
    import os

    from .. import Context, Net

Outputs = Union[Symbol, Sequence[Symbol], Mapping[str, Symbol]]
Step = Callable[[Symbol], Any]


class _Network(Shown):
    """What a Model and a Sequential with an input have in common."""

    def _model(self) -> Model:
        raise NotImplementedError

    def _layers(self) -> list[LayerRecord]:
        return list(self._model()._records)

    def _outputs_shown(self) -> list[str]:
        return self.output_names

    def _title(self) -> str:
        return self._model().title

    @property
    def layers(self) -> list[LayerRecord]:
        """The inputs and operators, in the order in which they run, with shapes and parameters."""
        return self._layers()

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs in the network."""
        model = self._model()
        return [model._names.tensor(x) for x in model._outputs]

    @property
    def parameters(self) -> list[ParamRecord]:
        """The parameters in order, each once, with names, shapes, types, and whether they are trained."""
        return list({param.name: param for layer in self.layers for param in layer.params}.values())

    def to_dict(self) -> dict[str, Any]:
        """The network as docs/json.md describes it, which ``dlprim.Net.from_json`` takes."""
        return self._model()._to_dict()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The network as JSON text, one operator per line. If `path` is given, the text is also written there."""
        text = _json_text(self.to_dict())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def build(self, context: Context, mode: str = "training", **options: Any) -> Net:
        """Builds the network on a device: ``Net.from_json(context, self.to_dict(), mode=mode, **options)``.

        `mode` is "training", "evaluation" or "inference". `options` are those of Net.from_json, such as `batch`.
        """
        from .. import Net

        return Net.from_json(context, self.to_dict(), mode=mode, **options)


class Model(_Network):
    """The network between `inputs` and `outputs`.

    `inputs` are symbols of nn.Input. Inputs that losses make for their labels need not be listed. `outputs` is a
    symbol, a list of symbols, or a dictionary that names them. Losses (nn.softmax_with_loss, nn.loss, ...) are outputs
    too. Raises InvalidArgumentError if an output needs an input that is not given, or if a name is used twice.

    A model can be called like a layer: `model(x)` repeats its operators on other symbols and shares its parameters.
    """

    def __init__(self, inputs: Symbol | Sequence[Symbol], outputs: Outputs, name: str | None = None) -> None:
        self.name = name
        self._inputs = _symbols("inputs", [inputs] if isinstance(inputs, Symbol) else inputs)
        named: dict[int, str] = {}
        if isinstance(outputs, Mapping):
            self._outputs = _symbols("outputs", list(outputs.values()))
            named = dict(enumerate(outputs))
        else:
            self._outputs = _symbols("outputs", [outputs] if isinstance(outputs, Symbol) else outputs)
        if not self._outputs:
            raise InvalidArgumentError("a model needs at least one output")
        self._given_inputs = list(self._inputs)
        self._calls = _collect(self._outputs)
        self._take_inputs()
        self._names = _Names(self._inputs, self._calls, self._outputs, named)
        self._records = self._record()

    @property
    def title(self) -> str:
        """The first line of the model's table."""
        return f"Model '{self.name}'" if self.name else "Model"

    @property
    def inputs(self) -> list[Symbol]:
        """The symbols that it reads: those that were given, then those that losses made for their labels."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Symbol]:
        """The symbols that it makes."""
        return list(self._outputs)

    def __repr__(self) -> str:
        parameters = sum(count_params(self._records))
        inputs = ", ".join(f"{x._record.name} {x.shape}" for x in self._inputs)
        outputs = ", ".join(self.output_names)
        return f"<{self.title}: {inputs} -> {outputs}; {len(self._calls)} operators, {parameters:,} parameters>"

    def __call__(self, *inputs: Symbol) -> Any:
        """Applies its operators to other symbols, one per given input. Shares its parameters.

        Returns the new outputs: a symbol, or a tuple if there are several. Losses read the labels that the model reads,
        unless symbols for them are given too.
        """
        if len(inputs) not in (len(self._given_inputs), len(self._inputs)):
            raise InvalidArgumentError(
                f"{self.title} is called with {len(inputs)} tensors, it has {len(self._given_inputs)} inputs"
            )
        known: dict[tuple[int, int], Symbol] = {}
        for own, other in zip(self._inputs, inputs):
            if not isinstance(other, Symbol):
                raise TypeError(f"{self.title} is called with {describe_value(other)}; symbolic tensors are needed")
            known[_key(own)] = other
        for call in self._calls:
            made = call.layer.apply(*(known.get(_key(x), x) for x in call.inputs))
            known.update({(call.serial, i): y for i, y in enumerate(made)})
        results = []
        for x in self._outputs:
            y = known.get(_key(x), x)
            marked = Symbol(y._record, y._call, y._index)
            marked._loss_weight, marked._implicit, marked._name = x._loss_weight, y._implicit, y._name
            results.append(marked)
        return results[0] if len(results) == 1 else tuple(results)

    def _model(self) -> Model:
        return self

    def _take_inputs(self) -> None:
        """Finds the inputs of labels, and reports missing inputs."""
        given = {id(x) for x in self._inputs}
        by_name: dict[str, Symbol] = {}
        for x in self._inputs:
            if x._call is not None:
                raise InvalidArgumentError(f"{x!r} is made by a layer; the inputs of a model are made by nn.Input")
            if x._record.name in by_name:
                raise InvalidArgumentError(
                    f"the name '{x._record.name}' is given twice, to two inputs; each name stands for one"
                )
            by_name[x._record.name] = x
        for x, reader in _leaves(self._calls, self._outputs):
            if id(x) in given:
                continue
            name = x._record.name
            known = by_name.get(name)
            if known is not None and same_labels(known, x):
                continue
            if known is not None:
                raise InvalidArgumentError(
                    f"{reader} reads an input '{name}' {x.shape}, which is not the model's own '{name}' {known.shape}"
                )
            if not x._implicit:
                own = ", ".join(repr(n) for n in by_name) or "none"
                raise InvalidArgumentError(
                    f"{reader} reads '{name}', which is not among the model's inputs ({own}): it belongs to another "
                    "model, or `inputs` lacks it"
                )
            by_name[name] = x
            self._inputs.append(x)

    def _record(self) -> list[LayerRecord]:
        names = self._names
        records = [LayerRecord(x._record.name, "Input", (), (x._record,), ()) for x in self._inputs]
        for call in self._calls:
            params = tuple(
                ParamRecord(name, param.shape, param.dtype, param.trainable)
                for name, param in zip(names.params(call), call.params)
            )
            outputs = tuple(TensorRecord(names.tensor(y), y.shape, y.dtype) for y in call.outputs)
            inputs = tuple(names.tensor(x) for x in call.inputs)
            records.append(LayerRecord(names.operator(call), call.layer.type, inputs, outputs, params))
        return records

    def _to_dict(self) -> dict[str, Any]:
        return {
            "inputs": [_input_entry(x) for x in self._inputs],
            "outputs": [self._output_entry(x) for x in self._outputs],
            "operators": [self._operator_entry(call) for call in self._calls],
        }

    def _output_entry(self, x: Symbol) -> Any:
        name, weight = self._names.tensor(x), x._loss_weight
        if weight is None or (weight == 1 and name.startswith("loss")):
            return name
        return {"name": name, "loss_weight": weight}

    def _operator_entry(self, call: Call) -> dict[str, Any]:
        layer, names = call.layer, self._names
        entry: dict[str, Any] = {
            "name": names.operator(call),
            "type": layer.type,
            "inputs": [names.tensor(x) for x in call.inputs],
            "outputs": [names.tensor(y) for y in call.outputs],
        }
        if layer.options:
            entry["options"] = dict(layer.options)
        params = names.params(call)
        if params != [f"{entry['name']}.{i}" for i in range(len(params))]:
            entry["params"] = params
        if layer.frozen:
            entry["frozen"] = True
        if layer.recompute:
            entry["recompute"] = True
        if layer.engine:
            entry["engine"] = layer.engine
        if layer.precision:
            entry["precision"] = layer.precision
        return entry


class Sequential(_Network):
    """Layers in sequence. An element is anything that makes one symbol from one: a layer, a function or a Sequential.

    If its first element is nn.Input, it is a network, which has `to_dict`, `build`, `plot` and a table. Its output is
    that of the last layer. If that is a loss, what the loss reads is an output too. Without an input it is a block, to
    be called with a symbol, and all calls share the parameters of the layers.
    """

    def __init__(self, layers: Sequence[Symbol | Step], name: str | None = None) -> None:
        self.name = name
        if isinstance(layers, (Symbol, str)) or not isinstance(layers, Sequence):
            raise TypeError(f"Sequential takes a list of layers, not {describe_value(layers)}")
        steps: list[Any] = list(layers)
        self._input: Symbol | None = steps.pop(0) if steps and isinstance(steps[0], Symbol) else None
        for step in steps:
            if isinstance(step, Symbol):
                raise InvalidArgumentError(
                    f"Sequential: {step!r} stands behind layers; an nn.Input can only be the first"
                )
            if not callable(step):
                raise TypeError(
                    f"Sequential: {describe_value(step)} is no layer; layers and functions of one tensor are needed"
                )
        self._steps: list[Step] = steps
        self._built: Model | None = None
        if self._input is not None:
            self._built = self._build(self._input)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __getitem__(self, index: int) -> Step:
        return self._steps[index]

    def __call__(self, x: Symbol) -> Symbol:
        """Applies the layers to `x`, one after the other."""
        return self._apply(x)[-1]

    def __repr__(self) -> str:
        return repr(self._built) if self._built is not None else f"<Sequential of {len(self._steps)} layers>"

    def __str__(self) -> str:
        return self.summary() if self._built is not None else repr(self)

    def _repr_svg_(self) -> str | None:
        return super()._repr_svg_() if self._built is not None else None

    def _apply(self, x: Symbol) -> list[Symbol]:
        made = [x]
        for step in self._steps:
            y = step(made[-1])
            if isinstance(y, tuple) and y and isinstance(y[0], Symbol):
                y = y[0]  # an LSTM's output, without its last states
            if not isinstance(y, Symbol):
                raise TypeError(f"Sequential: {step!r} makes {describe_value(y)}; a symbolic tensor is needed")
            made.append(y)
        return made

    def _build(self, x: Symbol) -> Model:
        made = self._apply(x)
        ends_in_loss = made[-1]._loss_weight is not None and isinstance(self._steps[-1], SoftmaxWithLoss)
        return Model(x, made[-2:] if ends_in_loss and len(made) > 2 else made[-1], name=self.name)

    def _model(self) -> Model:
        if self._built is None:
            raise InvalidArgumentError(
                "this Sequential has no input: nn.Input as its first element makes it a network, "
                "and called with a symbol it is part of one"
            )
        return self._built


class _Names:
    """The names in one model: those that were given, and generated ones with numbers in the order of creation."""

    def __init__(
        self, inputs: Sequence[Symbol], calls: Sequence[Call], outputs: Sequence[Symbol], named: Mapping[int, str]
    ) -> None:
        self._operators: dict[int, str] = {}
        self._layers: dict[int, str] = {}
        self._tensors: dict[tuple[int, int], str] = {}
        self._taken: dict[str, str] = {x._record.name: "an input" for x in inputs}
        self._counts: dict[str, int] = {}
        self._name_outputs(outputs, named)
        self._name_layers(calls)
        self._name_operators(calls)
        for x in outputs:
            x._name = self.tensor(x)
        for call in calls:
            for y in call.outputs:
                y._name = self.tensor(y)

    def operator(self, call: Call) -> str:
        return self._operators[call.serial]

    def params(self, call: Call) -> list[str]:
        return call.layer.param_names(self._layers[id(call.layer)])[: len(call.params)]

    def tensor(self, x: Symbol) -> str:
        return x._record.name if x._call is None else self._tensors[_key(x)]

    def _name_outputs(self, outputs: Sequence[Symbol], named: Mapping[int, str]) -> None:
        for i, name in named.items():
            x = outputs[i]
            check_name("an output", name)
            if x._call is None and x._record.name == name:
                continue
            if x._call is None or self._tensors.get(_key(x), name) != name:
                known = x._record.name if x._call is None else self._tensors[_key(x)]
                raise InvalidArgumentError(
                    f"the output '{name}' is called '{known}' already; nn.activation(x, 'identity') can be the other"
                )
            self._claim(name, "an output")
            self._tensors[_key(x)] = name

    def _name_layers(self, calls: Sequence[Call]) -> None:
        """Assigns given names first, so that generated ones differ. A layer keeps the name that a model gave it."""
        layers = list({id(call.layer): call.layer for call in calls}.values())
        first = {id(call.layer): call for call in reversed(calls)}
        outputs = {key: self._tensors.get((call.serial, 0)) for key, call in first.items()}
        output_of = {key: name for key, name in outputs.items() if name is not None}
        for layer in layers:
            if layer.name is not None:
                if output_of.get(id(layer)) != layer.name:
                    self._claim(layer.name, f"a {type(layer).__name__}")
                self._layers[id(layer)] = layer.name
        for layer in layers:
            if layer.name is not None:
                continue
            if id(layer) in output_of and not layer._params:  # a layer without parameters is named after its output
                self._layers[id(layer)] = output_of[id(layer)]
            else:
                kept = layer._generated
                name = kept if kept is not None and kept not in self._taken else self._number(layer.prefix)
                self._taken[name] = f"a {type(layer).__name__}"
                layer._generated = self._layers[id(layer)] = name

    def _name_operators(self, calls: Sequence[Call]) -> None:
        used: set[str] = set()
        for call in calls:
            name = self._layers[id(call.layer)]
            if name in used:  # called again
                name = self._number(name, 2)
                self._taken[name] = "a layer that is called again"
            used.add(name)
            self._operators[call.serial] = name
            for i, y in enumerate(call.outputs):
                self._tensors.setdefault(_key(y), name if i == 0 else f"{name}:{i}")

    def _claim(self, name: str, what: str) -> None:
        if name in self._taken:
            kinds = f"{self._taken[name]} and {what}" if self._taken[name] != what else f"two {what.split(' ', 1)[1]}s"
            raise InvalidArgumentError(f"the name '{name}' is given twice, to {kinds}; each name stands for one")
        self._taken[name] = what

    def _number(self, prefix: str, first: int = 1) -> str:
        """conv2d_1, conv2d_2, ...; the first loss is `loss`."""
        if prefix == "loss" and prefix not in self._taken:
            return prefix
        count = self._counts.get(prefix, 1 if prefix == "loss" else first - 1)
        while True:
            count += 1
            if f"{prefix}_{count}" not in self._taken:
                self._counts[prefix] = count
                return f"{prefix}_{count}"


def _key(x: Symbol) -> tuple[int, int]:
    """A key that is equal for symbols of the same tensor."""
    return (x._call.serial, x._index) if x._call is not None else (-1, id(x))


def _symbols(what: str, values: Any) -> list[Symbol]:
    try:
        found = list(values)
    except TypeError:
        found = [values]
    for value in found:
        if not isinstance(value, Symbol):
            raise TypeError(
                f"a model's {what} hold {describe_value(value)}; symbolic tensors are needed: nn.Input makes one"
            )
    return found


def _collect(outputs: Sequence[Symbol]) -> list[Call]:
    """The operators that the outputs need, in the order in which they were made."""
    found: dict[int, Call] = {}
    waiting = [x._call for x in outputs]
    while waiting:
        call = waiting.pop()
        if call is not None and call.serial not in found:
            found[call.serial] = call
            waiting += [x._call for x in call.inputs]
    return [found[serial] for serial in sorted(found)]


def _leaves(calls: Sequence[Call], outputs: Sequence[Symbol]) -> Iterator[tuple[Symbol, str]]:
    """The inputs that operators or outputs are, and their readers."""
    for call in calls:
        for x in call.inputs:
            if x._call is None:
                yield x, call.layer.title
    for x in outputs:
        if x._call is None:
            yield x, "an output"


def _input_entry(x: Symbol) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": x._record.name, "shape": list(x.shape)}
    if x.dtype != "float32":
        entry["dtype"] = "int" if x.dtype == "int32" else x.dtype
    return entry


def _json_text(net: Mapping[str, Any]) -> str:
    """Writes JSON with one input or operator per line."""
    parts = []
    for key in ("inputs", "outputs", "operators"):
        lines = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in net[key])
        parts.append(f'  "{key}": [\n{lines}\n  ]' if lines else f'  "{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


__all__ = ["Layer", "Model", "Sequential"]
