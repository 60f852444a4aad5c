// SPDX-License-Identifier: MIT
// Judges: the metrics of a run together, over its training batches or over its test set.
#pragma once

#include "api/training/feeder.hpp"
#include "train/metrics.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

class Judges {
  public:
    Judges() = default;
    explicit Judges(const std::vector<std::string>& names) {
        for (const std::string& name : names) metrics_.push_back(make_metric(name));
    }

    void reset() {
        for (const auto& metric : metrics_) metric->reset();
    }
    /// `shape` is that of the outputs.
    void add(std::span<const float> outputs, const Shape& shape, const Targets& targets) {
        for (const auto& metric : metrics_)
            metric->add({outputs, shape, targets.classes, targets.values, targets.ignored});
    }
    /// `loss` is the mean loss of what was judged.
    std::vector<double> values(double loss) const {
        std::vector<double> values;
        for (const auto& metric : metrics_) values.push_back(metric->value(loss));
        return values;
    }
    const std::vector<std::unique_ptr<Metric>>& metrics() const { return metrics_; }

  private:
    std::vector<std::unique_ptr<Metric>> metrics_;
};

}  // namespace dlprim
