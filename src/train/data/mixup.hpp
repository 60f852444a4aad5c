// SPDX-License-Identifier: MIT
// Mixup: inputs and targets of a batch become weighted means of two examples each
// (Zhang et al., "mixup: beyond empirical risk minimization", 2018).
#pragma once

#include <cstdint>

namespace dlprim {

struct Batch;

/// Turns the labels into targets: rows of `classes` numbers, 1 at the label and else 0. Throws
/// Error(format) for a label that is no class.
void make_one_hot(Batch& batch, std::int64_t classes);

/// Mixes each example with the one that is as far from the batch's other end, by one weight for
/// the batch, which is drawn from the beta distribution of (alpha, alpha). The batch has targets.
void mix_up(Batch& batch, double alpha, std::uint64_t seed);

}  // namespace dlprim
