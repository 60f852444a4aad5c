// SPDX-License-Identifier: MIT
// HostJob: a job as the host runs it: permuted so that results are contiguous, cut in tasks,
// interpreted in chunks.
#pragma once

#include "engine/pointwise/job.hpp"
#include "runtime/buffer.hpp"
#include "runtime/host_pool.hpp"

#include <span>

namespace dlprim::pointwise {

class HostJob {
  public:
    explicit HostJob(Job job);
    /// Operands as the launch gets them.
    void run(HostPool& pool, std::span<const BufferRef> operands) const;

    const Job& job() const { return job_; }
    int kept_class() const { return kept_class_; }
    std::int64_t results() const { return results_; }
    std::int64_t units() const { return units_; }
    std::int64_t unit_elements() const { return unit_elements_; }
    std::int64_t grain() const { return grain_; }
    std::int64_t parts() const { return parts_; }

  private:
    Job job_;
    int kept_class_ = -1;             ///< position of an element's result
    std::int64_t results_ = 0;        ///< kept positions
    std::int64_t units_ = 1;          ///< outer kept positions
    std::int64_t unit_elements_ = 0;  ///< elements of a unit
    std::int64_t grain_ = 1;          ///< a part is a multiple of so many elements
    std::int64_t parts_ = 1;          ///< pieces of a unit, each with sums of its own
};

}  // namespace dlprim::pointwise
