// SPDX-License-Identifier: MIT
// The kernels of pooling that compute strips, for GPUs: see kernels/pooling2d/strip.cl and
// backward_strip.cl.
#pragma once

#include "engine/launch.hpp"
#include "ops/pooling2d/options.hpp"

#include <string>

namespace dlprim::pooling2d {

/// A forward or backward problem as the kernels see it. It refers to the problem.
struct Strip {
    Strip(const Traits& device, const Problem& problem, bool backward);

    /// False where the kernels of rows or of single elements serve instead: on CPUs, and where the
    /// windows that a work-item would hold take too many registers.
    explicit operator bool() const { return height > 0; }
    /// The call with its range and everything but the tensors set. `more`: further definitions.
    KernelCall call(ContextImpl& context, const std::string& more, std::int64_t group) const;

    std::int64_t height = 0;  ///< STRIP: elements, one below the other, that a work-item computes

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
