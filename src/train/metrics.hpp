// SPDX-License-Identifier: MIT
// Metric: judges a net's outputs by their targets, batch after batch. A metric knows nothing of
// where batches come from. All that it has seen is a list of sums, which checkpoints keep.
#pragma once

#include <dlprim/shape.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// A batch: what the net said, and what it should have said. Targets are either class numbers or
/// numbers; the other list is empty.
struct Judged {
    std::span<const float> outputs;         ///< row-major, of this shape
    Shape shape;                            ///< first the examples
    std::span<const std::int32_t> classes;  ///< one for each example or each of its places (pixels)
    std::span<const float> values;          ///< as many as outputs
    std::optional<std::int64_t> ignored;    ///< the class number that does not count, if any
};

class Metric {
  public:
    virtual ~Metric() = default;
    /// As in the configuration, metrics.csv and reports: "accuracy".
    virtual std::string name() const = 0;
    virtual bool higher_is_better() const { return true; }
    /// Throws Error(invalid_argument) if outputs and targets do not fit together.
    virtual void add(const Judged& batch) = 0;
    /// Over all batches since reset(), whose mean loss is `loss`; NaN if it has seen none.
    virtual double value(double loss) const = 0;

    void reset() { sums_.clear(); }
    const std::vector<double>& sums() const { return sums_; }
    /// Goes on from what another one of the same name had seen.
    void restore(std::vector<double> sums) { sums_ = std::move(sums); }

  protected:
    /// The sums, of which there are `count`, or more if there were more before.
    std::vector<double>& sums(std::size_t count) {
        if (sums_.size() < count) sums_.resize(count, 0.0);
        return sums_;
    }

  private:
    std::vector<double> sums_;
};

/// "accuracy": the share of examples or places whose target has the largest output; "topK": is
/// among the K largest. "mean_iou": intersection over union, the mean over the classes that occur.
/// "mean_absolute_error" of numbers. "f1": of yes and no, an output above 0.5 being a yes; the mean
/// over the classes of which there is a yes, in outputs or targets. "perplexity": the exponential
/// of the loss. Throws Error(invalid_argument), with the nearest name.
std::unique_ptr<Metric> make_metric(const std::string& name);
/// Whether the metric of this name judges class numbers, and not numbers. Throws like
/// make_metric().
bool judges_classes(const std::string& name);

}  // namespace dlprim
