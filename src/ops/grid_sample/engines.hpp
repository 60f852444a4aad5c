// SPDX-License-Identifier: MIT
// The engines of GridSample and its gradients: each function registers those of one file.
#pragma once

#include "engine/element_types.hpp"
#include "ops/grid_sample/options.hpp"

#include <string>

namespace dlprim::grid_sample {

void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

/// What the engines of both files share: an engine for each of the three types.
class Base : public Engine {
  public:
    enum class Part : std::uint8_t { forward, data, grid };

    Base(Part part, bool on_host)
        : Engine(std::string(part == Part::forward ? "grid_sample."
                             : part == Part::data  ? "grid_sample_backward_data."
                                                   : "grid_sample_backward_grid.") +
                     (on_host ? "host" : "reference"),
                 part == Part::forward ? forward_type
                 : part == Part::data  ? backward_data_type
                                       : backward_grid_type,
                 on_host),
          part_(part) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        const DType dtype = problem.inputs[0].dtype;
        if (dtype != DType::f32 && dtype != DType::f64)
            return Verdict::no("it supports float and double tensors only");
        return one_float_type(device, problem, problem.inputs.size(), 1);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.1);
    }

  protected:
    Part part() const { return part_; }
    Sizes sizes(const Problem& problem) const {
        if (part_ == Part::forward) return {problem.inputs[0].shape, problem.inputs[1].shape};
        if (part_ == Part::data) return {problem.outputs[0].shape, problem.inputs[1].shape};
        return {problem.inputs[1].shape, problem.inputs[2].shape};
    }

  private:
    Part part_;
};

}  // namespace dlprim::grid_sample
