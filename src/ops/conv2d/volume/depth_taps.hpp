// SPDX-License-Identifier: MIT
// DepthTaps: x [N, C, D, H, W] -> y [N, D', C, K, H, W], where y[n, o, c, k] is the plane
// o * stride - pad + k * dilate of x[n, c], or zeros outside of it. DepthTapsBackward: y -> x, sums
// the planes that came from the same plane. Each is the gradient of the other.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::conv2d {

constexpr const char* taps_type = "DepthTaps";
constexpr const char* taps_backward_type = "DepthTapsBackward";

/// The sizes of a problem of either type. A plane has `plane` elements.
struct DepthTaps {
    std::int64_t batch, channels, depth, plane;
    std::int64_t out, kernel, stride, pad, dilate;

    /// `x`: the shape of DepthTaps's input, `out`: the size of its result's depth.
    DepthTaps(const Attrs& attrs, const Shape& x, std::int64_t out_depth);
    explicit DepthTaps(const Problem& problem);
};

/// What the engines of both files share: an engine for each of the two types.
class DepthTapsEngine : public Engine {
  public:
    DepthTapsEngine(bool backward, bool on_host);
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.5);
    }

  protected:
    bool backward() const { return backward_; }

  private:
    bool backward_;
};

}  // namespace dlprim::conv2d
