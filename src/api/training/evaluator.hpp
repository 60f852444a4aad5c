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
    /// Takes the test set of the data of `training`, and opens the network once more, for
    /// inference. `options` are those of the net that is trained.
    Evaluator(const Context& context, const TrainConfig& config, NetOptions options,
              const Feeder& training);
    /// The same on several devices, where `place` gets the devices of operators of the net that is
    /// trained before the first run().
    using Placing = std::function<std::map<std::string, std::string>()>;
    Evaluator(const std::vector<NamedDevice>& devices, const TrainConfig& config,
              NetOptions options, const Feeder& training, Placing place);
    /// The net that is trained is needed to check the data against it. `metrics` are the names of
    /// what to measure, and `mistakes` the number of those to keep.
    void attach(const TrainedNet& trained, const Roles& roles,
                const std::vector<std::string>& metrics, int mistakes);

    struct Result {
        double loss = 0;
        std::vector<double> metrics;
    };
    /// Over the whole set, with the present parameters of the net that is trained, or with those of
    /// `instead` in their place. Nothing if
    /// `is_stopped`, which is called between batches, returns true.
    std::optional<Result> run(const TrainedNet& trained,
                              const std::map<std::string, Tensor>& instead,
                              const std::function<bool()>& is_stopped);

    const Feeder& feeder() const { return feeder_; }
    /// Of the last run() that came to its end. Null if there is none, or outputs are not judged.
    const Findings* findings() const { return complete_ ? &*found_ : nullptr; }

  private:
    using Values = std::map<std::string, Tensor>;
    TrainedNet net();
    std::int64_t batch();
    /// Gives the net another batch, and the parameters that it then lacks.
    void set_batch(std::int64_t batch, const TrainedNet& trained, const Values& instead);
    void copy_parameters(const TrainedNet& trained, const Values& instead);

    Feeder feeder_;
    // One of them is there, but for the placed net before the first run().
    std::optional<Net> net_;
    std::optional<PlacedNet> placed_;
    std::function<PlacedNet(std::int64_t batch)> open_placed_;
    Roles roles_;
    Judges judges_;
    // Both are there if there is an output to judge. A run() that is stopped leaves found_ alone.
    std::optional<Findings> found_, finding_;
    bool complete_ = false;  ///< whether found_ is of a run
};

}  // namespace dlprim
