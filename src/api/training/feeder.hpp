// SPDX-License-Identifier: MIT
// Feeder: gives a net the batches of the training set or of the test set that a configuration
// names, from any batch of any epoch on. All that training knows of data sources is here.
#pragma once

#include "api/training/roles.hpp"
#include "train/config.hpp"
#include "train/image_data.hpp"

#include <dlprim/net.hpp>

#include <cstdint>
#include <vector>

namespace dlprim {

/// What a batch's examples should come out as.
struct Targets {
    std::int64_t examples = 0;
    std::vector<std::int32_t> classes;  ///< class numbers, row-major, one row per example
    std::vector<float> values;          ///< or numbers, likewise
};

class Feeder {
  public:
    enum class Set { training, test };

    /// Opens the data. `config` must outlive the feeder. Throws Error, which names the file.
    Feeder(const TrainConfig& config, Set set);

    /// Must be called before feed(). Throws Error if the examples do not fit the net, or numbers of
    /// the configuration do not fit the examples.
    void attach(Net& net, const Roles& roles);

    std::int64_t size() const { return data_.size(); }  ///< examples of the set
    /// Batches of an epoch. All have the configuration's size, except that the test set's last
    /// batch may be smaller. Of the training set, what is left over is left out.
    std::int64_t batches() const;
    std::int64_t examples(std::int64_t batch) const;  ///< of this batch

    /// The next batch to be fed. Batches and epochs are counted from 0. Data depend on these and
    /// the seed, and not on what was fed before.
    void start(int epoch, std::int64_t batch);
    /// Sets the inputs of the net, whose batch must be examples() of the next batch, and goes on to
    /// the batch that follows.
    Targets feed(Net& net);

  private:
    const TrainConfig& config_;
    const Set set_;
    ImageData data_;
    Augmentation augmentation_;
    Roles roles_;
    int epoch_ = -1;
    std::int64_t batch_ = 0;
    std::vector<std::int64_t> order_;  ///< of the examples in the epoch
    std::vector<float> images_;
};

}  // namespace dlprim
