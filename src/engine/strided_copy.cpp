// SPDX-License-Identifier: MIT
// What a strided or a padded copy is: merging its dimensions, and what engines that only copy
// accept and cost.
#include "engine/strided_copy.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace dlprim {

StridedCopy merged(const StridedCopy& copy) {
    StridedCopy result = copy;
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < copy.sizes.size(); ++d)
        if (copy.sizes[d] != 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return copy.y_strides[a] > copy.y_strides[b];
    });
    result.sizes.clear();
    result.x_strides.clear();
    result.y_strides.clear();
    for (const std::size_t d : order) {
        if (!result.sizes.empty() && result.x_strides.back() == copy.x_strides[d] * copy.sizes[d] &&
            result.y_strides.back() == copy.y_strides[d] * copy.sizes[d]) {
            result.sizes.back() *= copy.sizes[d];
            result.x_strides.back() = copy.x_strides[d];
            result.y_strides.back() = copy.y_strides[d];
        } else {
            result.sizes.push_back(copy.sizes[d]);
            result.x_strides.push_back(copy.x_strides[d]);
            result.y_strides.push_back(copy.y_strides[d]);
        }
    }
    if (result.sizes.empty()) {
        result.sizes = {1};
        result.x_strides = {1};
        result.y_strides = {1};
    }
    return result;
}

PaddedCopy merged(const PaddedCopy& copy) {
    PaddedCopy result = copy;
    result.x_sizes.clear();
    result.y_sizes.clear();
    result.before.clear();
    for (std::size_t d = 0; d < copy.x_sizes.size(); ++d) {
        const bool whole = copy.before[d] == 0 && copy.x_sizes[d] == copy.y_sizes[d];
        // A dimension without padding can be merged into the one before it. If that one has
        // padding, the padding then consists of whole rows, which only the constant mode can fill.
        const bool front_whole = !result.x_sizes.empty() && result.before.back() == 0 &&
                                 result.x_sizes.back() == result.y_sizes.back();
        if (!result.x_sizes.empty() && whole &&
            (copy.mode == PaddedCopy::Mode::constant || front_whole)) {
            result.x_sizes.back() *= copy.x_sizes[d];
            result.y_sizes.back() *= copy.y_sizes[d];
            result.before.back() *= copy.y_sizes[d];
        } else {
            result.x_sizes.push_back(copy.x_sizes[d]);
            result.y_sizes.push_back(copy.y_sizes[d]);
            result.before.push_back(copy.before[d]);
        }
    }
    if (result.x_sizes.empty()) {
        result.x_sizes = {1};
        result.y_sizes = {1};
        result.before = {0};
    }
    return result;
}

Verdict copy_verdict(const Problem& problem) {
    return copy_verdict(problem, problem.inputs.size());
}

Verdict copy_verdict(const Problem& problem, std::size_t moved) {
    if (!problem.epilogue.empty())
        return Verdict::no("it does not support an epilogue, since it only moves data");
    const DType dtype = problem.outputs[0].dtype;
    for (std::size_t i = 0; i < moved; ++i)
        if (problem.inputs[i].dtype != dtype)
            return Verdict::no(cat("it does not convert ", name_of(problem.inputs[i].dtype),
                                   " to another type, since it only moves data"));
    return Verdict::yes();
}

double copy_seconds(const Traits& device, const Problem& problem, int calls) {
    double bytes = 0;
    for (const Operand& output : problem.outputs)
        bytes +=
            2.0 * static_cast<double>(storage_bytes(output.shape, output.dtype, output.layout));
    const double bandwidth = std::max(device.gbytes_per_s, 1.0) * 1e9;
    return bytes / (0.6 * bandwidth) + calls * device.launch_us * 1e-6;
}

std::string_view raw_type(std::size_t element_bytes) {
    switch (element_bytes) {
        case 1:
            return "uchar";
        case 2:
            return "ushort";
        case 4:
            return "uint";
        case 8:
            return "ulong";
    }
    fail(ErrorKind::unsupported, "elements of ", element_bytes, " bytes cannot be copied");
}

}  // namespace dlprim
