// SPDX-License-Identifier: MIT
// HostJob: a job in the form that the host runs. Dimensions are permuted so that results are
// contiguous, and the work is divided into tasks and interpreted in chunks.
#pragma once

#include "engine/pointwise/job.hpp"
#include "runtime/buffer.hpp"
#include "runtime/host_pool.hpp"

#include <span>

namespace dlprim::pointwise {

class HostJob {
  public:
    explicit HostJob(Job job);
    /// Runs the job on a launch's operands. `scalars` are those of the run, which are read where
    /// the job's are arguments.
    void run(HostPool& pool, std::span<const BufferRef> operands,
             std::span<const Scalar> scalars) const;

    const Job& job() const { return job_; }
    int kept_class() const { return kept_class_; }
    std::int64_t results() const { return results_; }
    std::int64_t units() const { return units_; }
    std::int64_t unit_elements() const { return unit_elements_; }
    std::int64_t grain() const { return grain_; }
    std::int64_t parts() const { return parts_; }

  private:
    Job job_;
    int kept_class_ = -1;             ///< class of an element's result position
    std::int64_t results_ = 0;        ///< kept positions
    std::int64_t units_ = 1;          ///< outer kept positions
    std::int64_t unit_elements_ = 0;  ///< elements of a unit
    std::int64_t grain_ = 1;          ///< part sizes are multiples of this number of elements
    std::int64_t parts_ = 1;          ///< parts per unit, each with its own sums
};

}  // namespace dlprim::pointwise
