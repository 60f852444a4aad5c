// SPDX-License-Identifier: MIT
// Evaluator: the loss and the metrics of a net that is trained, over a test set.
#pragma once

#include "api/training/feeder.hpp"
#include "api/training/findings.hpp"
#include "api/training/judges.hpp"
#include "api/training/roles.hpp"

#include <dlprim/net.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

class Evaluator {
  public:
    /// Takes the test set of the data of `training`. `net` is the network once more, for inference.
    Evaluator(Net net, const Feeder& training);
    /// The net that is trained is needed to check the data against it. `metrics` are the names of
    /// what to measure, and `mistakes` the number of those to keep.
    void attach(Net& trained, const Roles& roles, const std::vector<std::string>& metrics,
                int mistakes);

    struct Result {
        double loss = 0;
        std::vector<double> metrics;
    };
    /// Over the whole set, with the present parameters of the net that is trained, or with those of
    /// `instead` in their place. Nothing if
    /// `is_stopped`, which is called between batches, returns true.
    std::optional<Result> run(Net& trained, const std::map<std::string, Tensor>& instead,
                              const std::function<bool()>& is_stopped);

    const Feeder& feeder() const { return feeder_; }
    Net& net() { return net_; }
    /// Of the last run() that came to its end. Null if there is none, or outputs are not judged.
    const Findings* findings() const { return complete_ ? &*found_ : nullptr; }

  private:
    using Values = std::map<std::string, Tensor>;
    void copy_parameters(Net& trained, const Values& instead);

    Feeder feeder_;
    Net net_;
    Roles roles_;
    Judges judges_;
    // Both are there if there is an output to judge. A run() that is stopped leaves found_ alone.
    std::optional<Findings> found_, finding_;
    bool complete_ = false;  ///< whether found_ is of a run
};

}  // namespace dlprim
