# SPDX-License-Identifier: MIT
"""Solver: trains a Net."""

from __future__ import annotations

from typing import NoReturn

from . import _core
from .net import Net


class Solver(_core.Solver):
    """Trains a net in training mode: SGD, Adam or AdamW, with definitions and constants as PyTorch's.

    One solver per net, which it keeps alive. Work is enqueued; reading a loss waits for it.

    Args:
        net: in training mode; it plans anew.
        kind: "sgd", "adam" or "adamw".
        learning_rate: from the first step on; see the property.
        momentum: of sgd.
        nesterov: of sgd with a momentum.
        beta1: of adam and adamw.
        beta2: of adam and adamw.
        epsilon: of adam and adamw.
        weight_decay: sgd and adam: added to the gradient; adamw: decoupled.
        clip_norm: above 0: gradients are scaled to at most this global L2 norm.
        clip_value: above 0: gradients are clamped to plus and minus this.
        accumulate: batches whose gradients are averaged before an update.
        loss_scale: where operators are of precision fp16: what the loss is multiplied by at first; 0: none.
        loss_scale_steps: good updates in a row that double it.
        guard_loss: from the first loss on that is not finite, parameters stay as they are, without a wait,
            until call_off().

    Raises:
        InvalidArgumentError: a number that makes no sense, or a net that is not in training mode.
        UnsupportedError: a trainable parameter that is not float32.
    """

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
        loss_scale: float = 65536,
        loss_scale_steps: int = 2000,
        guard_loss: bool = False,
    ) -> None:
        if not isinstance(net, Net):
            raise TypeError(f"a solver is made on a dlprim.Net, not on a {type(net).__name__}")
        super().__init__(
            net,
            kind,
            learning_rate=learning_rate,
            momentum=momentum,
            nesterov=nesterov,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            clip_norm=clip_norm,
            clip_value=clip_value,
            accumulate=accumulate,
            loss_scale=loss_scale,
            loss_scale_steps=loss_scale_steps,
            guard_loss=guard_loss,
        )
        self._net = net

    @property
    def net(self) -> Net:
        """The net that it trains."""
        return self._net

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Solver cannot be pickled or copied, since its state lives on a device: save_checkpoint() writes "
            "a file, which load_checkpoint() goes on from"
        )

    def __repr__(self) -> str:
        return f"<dlprim.Solver {self.options['kind']}: learning_rate={self.learning_rate:g}, steps={self.steps}>"
