// SPDX-License-Identifier: MIT
// SolverOptions: which solver, with which constants.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

struct SolverOptions {
    enum class Kind { sgd, adam, adamw };
    Kind kind = Kind::adam;
    double learning_rate = 1e-3;
    double momentum = 0;  ///< sgd
    bool nesterov = false;
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0;  ///< sgd and adam: added to the gradient; adamw: decoupled
    double clip_norm = 0;     ///< > 0: gradients are scaled to at most this global L2 norm
    double clip_value = 0;    ///< > 0: gradients are clamped to +-this
    int accumulate = 1;       ///< batches whose gradients are averaged before an update
    /// Where operators of the net are of precision fp16: what the loss is multiplied by at first,
    /// so that small gradients do not vanish. Updates divide by it; one whose gradients are not all
    /// finite is left out and halves it, loss_scale_steps good ones in a row double it. 0: none.
    double loss_scale = 65536;
    int loss_scale_steps = 2000;
    /// From the first batch on that has a loss which is not finite, parameters and solver state
    /// stay as they are, without a wait; Solver::call_off() puts back the rest. For reading losses
    /// late.
    bool guard_loss = false;
};

}  // namespace dlprim
