// SPDX-License-Identifier: MIT
// The engines of Resize and its gradient: each function registers those of one file.
#pragma once

#include "engine/element_types.hpp"
#include "ops/resize/axis.hpp"

#include <string>

namespace dlprim::resize {

void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

/// What the engines of both files share: an engine for each of the two types.
class Base : public Engine {
  public:
    Base(const std::string& way, bool backward)
        : backward_(backward), name_((backward ? "resize_backward." : "resize.") + way) {}
    std::string_view name() const override { return name_; }
    std::string_view op() const override { return backward_ ? backward_type : forward_type; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return one_float_type(device, problem, 1, 1);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.2);
    }

  protected:
    bool backward() const { return backward_; }
    /// Those of the forward direction.
    std::array<Axis, 3> axes(const Problem& problem) const {
        return resize::axes(problem.attrs, (backward_ ? problem.outputs : problem.inputs)[0].shape);
    }

  private:
    bool backward_;
    std::string name_;
};

}  // namespace dlprim::resize
