// SPDX-License-Identifier: MIT
// first_nan_step(): runs step by step and checks each result.
#include "exec/first_nan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace dlprim {

const Step* first_nan_step(Executor& executor) {
    const Step* found = nullptr;
    std::vector<std::byte> stored;
    std::vector<float> host;
    executor.keep_states();  // so that this run changes no states
    executor.run_stepwise(Part::forward, [&](const Step& step) {
        const DType dtype = step.written_dtype;
        if (!is_float(dtype) || dtype == DType::f64) return true;
        for (const auto& [place, bytes] : step.written) {
            stored.resize(bytes);
            executor.read(place, stored.data(), bytes);
            host.resize(bytes / size_of(dtype));
            convert(stored.data(), dtype, host.data(), DType::f32, host.size());
            if (std::all_of(host.begin(), host.end(), [](float v) { return std::isfinite(v); }))
                continue;
            found = &step;
            return false;
        }
        return true;
    });
    executor.restore_states();
    return found;
}

}  // namespace dlprim
