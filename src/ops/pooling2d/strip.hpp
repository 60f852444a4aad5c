// SPDX-License-Identifier: MIT
// The pooling kernels for GPUs that compute strips: kernels/pooling2d/strip.cl and
// backward_strip.cl.
#pragma once

#include "engine/launch.hpp"
#include "ops/pooling2d/options.hpp"

#include <string>

namespace dlprim::pooling2d {

/// A forward or backward problem in the form that the kernels need. Keeps a reference to the
/// problem.
struct Strip {
    Strip(const Traits& device, const Problem& problem, bool backward);

    /// False if the kernels for rows or single elements must be used: on CPUs, and if the windows
    /// of a work-item would need too many registers.
    explicit operator bool() const { return height > 0; }
    /// The call with its range and everything but the tensors set. `more`: additional defines.
    KernelCall call(ContextImpl& context, const std::string& more, std::int64_t group) const;

    std::int64_t height = 0;  ///< STRIP: elements of a column that a work-item computes

  private:
    std::int64_t registers(std::int64_t rows) const;
    std::string defines(std::size_t count) const;

    const Problem& problem_;
    bool backward_;
    Options options_;
    Shape x_, y_;  ///< shapes of the forward direction
    std::int64_t outer_ = 0, lanes_ = 1, vector_ = 1;
};

}  // namespace dlprim::pooling2d
