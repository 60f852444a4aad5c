// SPDX-License-Identifier: MIT
// What the engines of PadBackward share: the geometry in the last three dimensions, that is sizes
// of x and y and the padding in front, and what they support.
#pragma once

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "ops/pad/options.hpp"

#include <algorithm>
#include <array>

namespace dlprim::pad {

struct GatherGeometry {
    PaddedCopy::Mode mode = PaddedCopy::Mode::reflect;
    std::int64_t outer = 1;  ///< product of the dimensions before the last three
    std::array<std::int64_t, 3> x{1, 1, 1}, y{1, 1, 1}, before{0, 0, 0};

    explicit GatherGeometry(const Problem& problem) {
        const Shape& dy = problem.inputs[0].shape;
        const Shape& dx = problem.outputs[0].shape;
        const Options options(problem.attrs, dx);
        mode = options.mode;
        for (int k = 1; k <= 3 && k <= dx.rank(); ++k) {
            const auto at = static_cast<std::size_t>(3 - k);
            x[at] = dx[-k];
            y[at] = dy[-k];
            before[at] = options.before[static_cast<std::size_t>(dx.rank() - k)];
        }
        outer = dx.product(0, std::max(0, dx.rank() - 3));
    }
};

class GatherEngine : public Engine {
  public:
    GatherEngine(std::string name, bool on_host)
        : Engine(std::move(name), "PadBackward", on_host) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        if (problem.inputs[0].dtype != DType::f32 || problem.outputs[0].dtype != DType::f32)
            return Verdict::no(cat("it supports float tensors only, not ",
                                   name_of(problem.inputs[0].dtype), " and ",
                                   name_of(problem.outputs[0].dtype)));
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
};

void add_gather_engine(EngineRegistry& engines);       ///< gather.cpp
void add_gather_host_engine(EngineRegistry& engines);  ///< gather_host.cpp

}  // namespace dlprim::pad
