// SPDX-License-Identifier: MIT
// Loader: the batches of a data set, which threads of its own read ahead.
//
// A batch is a function of the data, the options, its epoch and its number, whatever the number of
// threads and whatever was read before.
#pragma once

#include "train/data/augment.hpp"
#include "train/dataset.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

struct LoaderOptions {
    std::int64_t batch = 1;
    std::uint64_t seed = 1;
    /// In training examples are shuffled in each epoch and augmented, and a last batch that is not
    /// full is left out. Else they come in their order, and the last batch may be smaller.
    bool training = true;
    bool whole = false;  ///< in training: a last batch that is not full comes as it is
    /// Whether an example that cannot be read is replaced by another one, in training, or left out.
    bool skip_broken = false;
    /// Class numbers become rows of zeros with a one, Batch::targets. Mixing needs them.
    bool one_hot = false;
    std::int64_t classes = 0;  ///< with one_hot
    int threads = 0;           ///< 0: as many as cores
};

/// A batch on the host. Of labels and targets it has what the data set's target_kind() needs.
struct Batch {
    std::int64_t epoch = 0, number = 0;
    std::int64_t count = 0;              ///< examples
    std::vector<float> inputs;           ///< [count, ...]
    std::vector<std::int32_t> labels;    ///< [count], or [count, height, width] of masks
    std::vector<float> targets;          ///< [count, target_size]
    std::vector<std::int64_t> examples;  ///< [count], their indices in the data set
};

/// How long one side waited for the other, in seconds, since the Loader was made.
struct LoaderWaits {
    double for_data = 0;    ///< next() waited for a batch
    double for_device = 0;  ///< all threads waited for next() to take a batch
};

/// A sentence on it, or nothing if neither waited for a second.
std::string text_of(const LoaderWaits& waits);

/// One thread calls its functions.
class Loader {
  public:
    /// `members`: the examples of the data set that are read. Throws Error(invalid_argument) if
    /// there are none, or in training fewer than a batch.
    Loader(std::shared_ptr<const Dataset> data, std::vector<std::int64_t> members,
           const AugmentOptions& augmentation, const LoaderOptions& options);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    std::int64_t size() const;         ///< members
    std::int64_t batches() const;      ///< in an epoch
    const Shape& input_shape() const;  ///< of one example
    const Dataset& data() const;

    /// Batches are read from this one on. In training the epochs that follow are read as well.
    void start(std::int64_t epoch, std::int64_t batch);
    /// The next batch, which is valid until the next call. Waits for it, and throws what reading it
    /// threw. Without start() the first one is batch 0 of epoch 0.
    const Batch& next();

    LoaderWaits waits() const;
    /// The examples that could not be read so far, and why.
    std::map<std::int64_t, std::string> broken() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
