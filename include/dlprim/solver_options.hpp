// SPDX-License-Identifier: MIT
// SolverOptions: the method of a Solver and its constants. Definitions are PyTorch's. It is a plain
// value.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

struct SolverOptions {
    enum class Kind { sgd, adam, adamw };
    Kind kind = Kind::adam;
    double learning_rate = 1e-3;
    double momentum = 0;    ///< of sgd
    bool nesterov = false;  ///< sgd with Nesterov's momentum; `momentum` must be above 0
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of adam and adamw
    double weight_decay = 0;  ///< sgd and adam: added to the gradient; adamw: decoupled
    double clip_norm = 0;     ///< above 0, gradients are scaled to at most this global L2 norm
    double clip_value = 0;    ///< above 0, gradients are clamped to [-clip_value, clip_value]
    int accumulate = 1;       ///< number of batches whose gradients are averaged for an update
    /// How many shards a batch consists of. Each is computed as a batch of its own, so that the
    /// net's batch is a shard's, and step() is called for one after the other. What is summed over
    /// them (gradients, losses, running statistics) is added in one binary tree over the shard's
    /// index and divided by their number, so that the result has the same bits wherever a shard is
    /// computed. 1: the batch as a whole.
    int shards = 1;
    /// The first loss scale of nets with operators of precision fp16 (Micikevicius et al. 2018):
    /// the loss is multiplied by it so that small gradients do not vanish, and updates divide by
    /// it. An update whose gradients are not all finite is skipped and halves the scale;
    /// loss_scale_steps updates in a row with finite gradients double it. 0: no loss scale.
    double loss_scale = 65536;
    int loss_scale_steps = 2000;
    /// Above 0, the solver also keeps the exponential moving average of the parameters: after each
    /// update, average = keep * average + (1 - keep) * parameter. After t updates before it, keep
    /// is min(average, (1 + t) / (10 + t)), and 0 for the first (TensorFlow's rule), so that early
    /// values do not linger. Solver::use_averages() turns to it.
    double average = 0;
    /// For programs that read a loss only after later steps were enqueued. From the first batch on
    /// whose loss is not finite, the device itself leaves parameters and solver state as they are.
    /// Solver::call_off() undoes such steps, after which training can go on.
    bool guard_loss = false;
    /// Which part of the parameters this solver updates, and keeps the state of, if they are cut
    /// into several parts of about the same size. A Team sets both (TeamOptions::sharded_states):
    /// a solver of its own has one part.
    int state_part = 0, state_parts = 1;
};

}  // namespace dlprim
