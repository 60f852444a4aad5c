// SPDX-License-Identifier: MIT
// StageTimes: how long the stages of an exchange take, and what is busy meanwhile.
#pragma once

#include "api/scale/stage_loads.hpp"

#include <dlprim/scale.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// What is busy, and for how long.
class Busy {
  public:
    void add(const std::string& what, double seconds);
    std::string most() const;

  private:
    std::vector<std::pair<std::string, double>> all_;
};

class StageTimes {
  public:
    /// `memory` as StepWork::memory. Both references outlive the object.
    StageTimes(const Cluster& cluster, double memory, Busy& busy)
        : cluster_(cluster), memory_(memory), busy_(busy) {}

    /// Seconds for a part of so many bytes: until a device has the sums of others,
    double sums(const StageLoads& stage, double bytes);
    /// has added them,
    double additions(const StageLoads& stage, double bytes);
    /// and has the means of others. `is_last`: it is the last stage of sums, and so the first one
    /// of means.
    double means(const StageLoads& stage, double bytes, bool is_last);
    /// Until the host knows what happened, so many times.
    double wakes(int count);

  private:
    double link(const std::string& level, double seconds);
    double late(std::size_t level, int messages);
    double copies(double bytes);
    double digests(double bytes);
    double transport(const StageLoads& stage, const std::vector<double>& on, double bytes,
                     double moved);

    const Cluster& cluster_;
    const double memory_;
    Busy& busy_;
};

}  // namespace dlprim
