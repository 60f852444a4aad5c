// SPDX-License-Identifier: MIT
// Feeder: gives a net the batches of the training set or of the test set that a configuration
// names, from any batch of any epoch on. All that training knows of data sources is here.
#pragma once

#include "api/label_inputs.hpp"
#include "api/training/roles.hpp"
#include "train/config.hpp"
#include "train/data/open_data.hpp"

#include <dlprim/net.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

/// What a batch's examples should come out as.
struct Targets {
    std::int64_t examples = 0;
    std::int64_t weight = 0;  ///< of the batch's loss in a mean: examples, or places that count
    std::vector<std::int32_t> classes;    ///< class numbers, row-major, one row per example
    std::vector<float> values;            ///< or numbers, likewise
    std::optional<std::int64_t> ignored;  ///< the class number that does not count
    std::vector<std::int64_t> indices;    ///< of the examples in their data set
};

class Feeder {
  public:
    /// `config` must outlive the feeder. Throws Error for fewer examples than a batch has.
    Feeder(const TrainConfig& config, DataParts parts);
    /// A feeder of the test set that belongs to a feeder of a training set.
    struct Test {};
    Feeder(const Feeder& training, Test);

    /// Whether there is a test set: one of its own, or a share of the training set.
    bool has_test() const;

    /// Must be called before feed(). Throws Error if the examples do not fit the net, or numbers of
    /// the configuration do not fit the examples.
    void attach(Net& net, const Roles& roles);

    /// How many examples the loader puts into a batch. A test set is judged in batches of a
    /// training shard, which the device has memory for.
    std::int64_t batch_size() const { return is_test_ ? config_.shard_batch() : config_.batch; }
    /// Examples of the set.
    std::int64_t size() const { return static_cast<std::int64_t>(part_.members.size()); }
    /// Batches of an epoch. All have the configuration's size, except that the test set's last
    /// batch may be smaller, and others where examples cannot be read. Of the training set, what
    /// is left over is left out, or filled up with places that do not count where examples are rows
    /// of places.
    std::int64_t batches() const;

    /// The next batch to be fed. Batches and epochs are counted from 0. Data depend on these and
    /// the seed, and not on what was fed before.
    void start(int epoch, std::int64_t batch);
    /// Goes on to the next batch, for which it waits, and returns its targets. It is the one that
    /// upload() takes until the following call.
    Targets take();
    /// Sets the inputs of the net to a shard of the batch. The net's batch must be the shard's.
    void upload(Net& net, int shard, int shards);
    /// take(), and upload() of the whole batch, unless no example of it can be read: then the net
    /// is left as it is. The net is given another batch where this one is smaller.
    Targets feed(Net& net);

    const Dataset& data() const;
    /// How pictures become inputs of the net that is trained, to be kept with its weights; nothing
    /// if inputs are no pictures. After attach().
    std::optional<Preprocessing> preprocessing() const;
    LoaderWaits waits() const;
    /// Sentences for who reads a run's notes: files that were passed over, before the run; and
    /// after it examples that could not be read, and in training who waited for whom.
    std::vector<std::string> notes_before() const;
    std::vector<std::string> notes_after() const;
    /// Examples that could not be read, by their index, and why.
    std::map<std::int64_t, std::string> broken() const;

  private:
    void check_shapes(Net& net) const;
    void check_masks(const Batch& batch) const;
    /// Whether examples are rows of places, so that a batch can be filled up.
    bool pads() const;

    const TrainConfig& config_;
    const bool is_test_ = false;
    DataParts parts_;  ///< of a training feeder
    DataPart part_;
    std::unique_ptr<Loader> loader_;
    Roles roles_;
    LabelInput labels_;                 ///< of masks
    std::vector<std::string> remarks_;  ///< on how the data suit the net
    std::int64_t position_ = 0;         ///< of the next batch, counted through epochs
    const Batch* taken_ = nullptr;
    Batch padded_;  ///< what is taken, if it was filled up
};

}  // namespace dlprim
