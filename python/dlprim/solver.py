# SPDX-License-Identifier: MIT
"""Solver: trains a Net."""

from __future__ import annotations

from typing import NoReturn

from . import _core
from ._arguments import offers_names
from .net import Net


class Solver(_core.Solver):
    """Trains a net in training mode by SGD, Adam or AdamW, with PyTorch's definitions and constants.

    A net has one solver at a time, which keeps the net alive. A new solver starts without the state of the former,
    which must not be used any more. Work is enqueued; reading a loss waits for it.

    Args:
        net: a net in training mode. It makes a new plan.
        kind: "sgd", "adam" or "adamw".
        learning_rate: the rate from the first step on; see the property.
        momentum: for sgd.
        nesterov: for sgd with momentum.
        beta1: for adam and adamw.
        beta2: for adam and adamw.
        epsilon: for adam and adamw.
        weight_decay: for sgd and adam it is added to the gradient; for adamw it is decoupled.
        clip_norm: if positive, gradients are scaled to at most this global L2 norm.
        clip_value: if positive, gradients are clamped to [-clip_value, clip_value].
        accumulate: number of batches whose gradients are averaged before an update.
        shards: number of shards of a batch. Each is computed as a batch of its own, of the net's size, by a call of
            step(). Gradients, losses and running statistics are added in one binary tree over the shard's index, and
            after the last shard their means are in the net's tensors, and the update is made.
        loss_scale: initial factor of the loss if operators have precision fp16; 0 means none.
        loss_scale_steps: number of consecutive good updates after which the factor is doubled.
        average: if positive, the share that an exponential moving average of the parameters keeps at each update;
            use_averages() turns to it.
        guard_loss: from the first loss that is not finite, parameters stay unchanged until call_off(). Nothing waits.

    Raises:
        InvalidArgumentError: a number is invalid, or the net is not in training mode.
        UnsupportedError: a trainable parameter is not float32.
    """

    @offers_names
    def __init__(
        self,
        net: Net,
        kind: str = "adam",
        *,
        learning_rate: float = 1e-3,
        momentum: float = 0,
        nesterov: bool = False,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0,
        clip_norm: float = 0,
        clip_value: float = 0,
        accumulate: int = 1,
        shards: int = 1,
        loss_scale: float = 65536,
        loss_scale_steps: int = 2000,
        average: float = 0,
        guard_loss: bool = False,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "net", "__class__")}
        if not isinstance(net, Net):
            raise TypeError(f"a solver is made on a dlprim.Net, not on a {type(net).__name__}")
        super().__init__(net, options)
        self._net = net

    @property
    def net(self) -> Net:
        """The net that this solver trains."""
        return self._net

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Solver cannot be pickled or copied, since its state lives on a device: save_checkpoint() writes "
            "a file, which load_checkpoint() goes on from"
        )

    def __repr__(self) -> str:
        return f"<dlprim.Solver {self.options['kind']}: learning_rate={self.learning_rate:g}, steps={self.steps}>"
