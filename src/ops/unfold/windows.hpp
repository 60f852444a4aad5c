// SPDX-License-Identifier: MIT
// Unfold and Fold: windows of images [n, c, h, w] as columns [n, c kernel_h kernel_w, windows], and
// back. Each is the gradient of the other.
#pragma once

#include "base/attrs.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"

#include <dlprim/shape.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace dlprim::unfold {

constexpr std::string_view unfold_type = "Unfold", fold_type = "Fold";

/// Along one dimension of images: window i has the pixels i * stride - pad + k * dilate.
struct Axis {
    std::int64_t size = 0, kernel = 0, stride = 0, pad = 0, dilate = 0, windows = 0;
};

/// The sizes of a problem of either operator.
struct Windows {
    std::int64_t n = 0, c = 0;
    std::array<Axis, 2> axes;  ///< height, width

    std::int64_t planes() const { return n * c; }
    std::int64_t pixels() const { return axes[0].size * axes[1].size; }
    std::int64_t taps() const { return axes[0].kernel * axes[1].kernel; }
    std::int64_t windows() const { return axes[0].windows * axes[1].windows; }
    Shape images() const { return Shape{n, c, axes[0].size, axes[1].size}; }
    Shape columns() const { return Shape{n, c * taps(), windows()}; }
};

/// They throw Error(invalid_argument) where the options and the input disagree.
Windows windows_of_images(const Attrs& attrs, const Shape& images);
Windows windows_of_columns(const Attrs& attrs, const Shape& columns);

void unfold_oracle(const Windows& windows, const HostArray& images, HostArray& columns);
void fold_oracle(const Windows& windows, const HostArray& columns, HostArray& images);

/// What the engines of both operators share.
class Base : public Engine {
  public:
    Base(std::string_view op, bool on_host)
        : Engine(
              std::string(op == fold_type ? "fold." : "unfold.") + (on_host ? "host" : "reference"),
              op, on_host) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.3);
    }

  protected:
    bool folds() const { return op() == fold_type; }
    Windows windows(const Problem& problem) const {
        const Shape& x = problem.inputs[0].shape;
        return folds() ? windows_of_columns(problem.attrs, x) : windows_of_images(problem.attrs, x);
    }
};

// Each function registers the engines of one file.
void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

}  // namespace dlprim::unfold
