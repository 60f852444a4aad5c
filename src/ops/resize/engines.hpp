// SPDX-License-Identifier: MIT
// The engines of Resize and its gradient: each function registers those of one file.
#pragma once

#include "engine/element_types.hpp"
#include "ops/resize/axis.hpp"

#include <string>

namespace dlprim::resize {

void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

/// Images as [outer, depth, height, width, inner]: channels are outer, inner, or both in blocks.
struct View {
    std::int64_t outer, inner;
    explicit View(const Operand& images);
};

/// What the engines of both files share: an engine for each of the two types. The gradient is
/// computed as the operator is, by the axes' transposed matrices, so that it is deterministic.
class Base : public Engine {
  public:
    Base(bool backward, bool on_host)
        : Engine(std::string(backward ? "resize_backward." : "resize.") +
                     (on_host ? "host" : "reference"),
                 backward ? backward_type : forward_type, on_host),
          backward_(backward) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override;
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, on_host() ? 0.3 : 0.4);
    }

  protected:
    /// The matrices by which the problem's input is multiplied.
    std::array<Axis, 3> axes(const Problem& problem) const;

  private:
    bool backward_;
};

}  // namespace dlprim::resize
