# SPDX-License-Identifier: MIT
"""ONNX's interface for backends, so that programs and tests written for it run models here.

It needs the package onnx. The module itself offers prepare(), run_model(), run_node() and supports_device(), as other
backends do:

    import dlprim.onnx_backend
    outputs = dlprim.onnx_backend.run_model(onnx.load("model.onnx"), [array])

The device "CPU" stands for what DLPRIM_DEVICE names, or for the host where it names nothing. Any other name is one that
dlprim.Context() takes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._core import Context, ONNXSession, find, newest_onnx_opset
from .errors import DlprimError

__all__ = ["DlprimBackend", "DlprimRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


def _device(name: str) -> str:
    """Return what Context() takes for a device of ONNX's."""
    if name.split(":")[0].upper() == "CPU" and name != "cpu":
        return os.environ.get("DLPRIM_DEVICE") or "cpu"
    return name


class DlprimRep(BackendRep):  # type: ignore[misc, unused-ignore]  # Any where onnx is absent
    """A model that is ready to run."""

    def __init__(self, session: ONNXSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model on a list of arrays in the order of its inputs, on a dict by name, or on one array.

        Returns the outputs in the model's order; their names index them, too. `kwargs` are ignored.
        """
        names = self.session.input_names
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
            if len(inputs) > len(names):
                raise ValueError(f"the model has {len(names)} inputs, {len(inputs)} were given")
            given = dict(zip(names, inputs))
        else:
            given = {names[0]: inputs}
        outputs = self.session.run(given)
        result: tuple[Any, ...] = namedtupledict("Outputs", list(outputs))(*outputs.values())
        return result


class DlprimBackend(Backend):  # type: ignore[misc, unused-ignore]  # Any where onnx is absent
    """Runs models with dlprim.ONNXSession."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether `device` is "CPU" or a device that dlprim finds."""
        try:
            find(_device(device))
        except DlprimError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> DlprimRep:
        """Check the model by ONNX's rules and make it ready to run. `kwargs` are ignored.

        Operators that are not supported are an UnsupportedError of DlprimRep.run().
        """
        super().prepare(model, device, **kwargs)
        return cls._open(model, device)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Run a model once; see prepare() and DlprimRep.run()."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator on arrays, in the order of the node's inputs that are not left out.

        `opset_version` in `kwargs` is that of the operator set; without it, it is the newest one that both onnx and
        this library know. The outputs' types and shapes follow from the operator, so that outputs_info is ignored.
        """
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        version = int(kwargs.get("opset_version", min(onnx.defs.onnx_opset_version(), newest_onnx_opset)))
        names = [name for name in node.input if name]
        given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=True))
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [_value_info(name, np.asarray(value)) for name, value in given.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        imports = [onnx.helper.make_opsetid("", version)]
        if node.domain:
            imports.append(onnx.helper.make_opsetid(node.domain, 1))
        model = onnx.helper.make_model(graph, opset_imports=imports)
        return cls._open(model, device).run(given)

    @staticmethod
    def _open(model: onnx.ModelProto, device: str) -> DlprimRep:
        return DlprimRep(ONNXSession(Context(_device(device)), model.SerializeToString()))


def _value_info(name: str, value: np.ndarray[Any, Any]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


is_compatible = DlprimBackend.is_compatible
prepare = DlprimBackend.prepare
run_model = DlprimBackend.run_model
run_node = DlprimBackend.run_node
supports_device = DlprimBackend.supports_device
