// SPDX-License-Identifier: MIT
// Evaluator: the loss and accuracy of a net that is trained, over a test set.
#pragma once

#include "api/training/feeder.hpp"
#include "api/training/roles.hpp"

#include <dlprim/net.hpp>

#include <cstdint>
#include <vector>

namespace dlprim {

/// How many rows of scores are largest at their label.
std::int64_t count_right(const std::vector<float>& scores, const std::vector<std::int32_t>& labels);

class Evaluator {
  public:
    /// Takes the test set of the data of `training`, and opens the network once more, for
    /// inference. `options` are those of the net that is trained.
    Evaluator(const Context& context, const TrainConfig& config, NetOptions options,
              const Feeder& training);
    /// The net that is trained is needed to check the data against it.
    void attach(Net& trained, const Roles& roles);

    struct Result {
        double loss = 0, accuracy = 0;
    };
    /// Over the whole set, with the present parameters of the net that is trained.
    Result run(Net& trained);

  private:
    void copy_parameters(Net& trained);

    Feeder feeder_;
    Net net_;
    Roles roles_;
};

}  // namespace dlprim
