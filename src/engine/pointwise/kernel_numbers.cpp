// SPDX-License-Identifier: MIT
// Names of a kernel's numbers.
#include "engine/pointwise/kernel_numbers.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::pointwise {

std::string KernelNumbers::name(const std::string& name, std::int64_t value) {
    const bool known = std::any_of(all_.begin(), all_.end(),
                                   [&](const KernelNumber& n) { return n.name == name; });
    if (!known) {
        KernelNumber number;
        number.name = name;
        number.whole = value;
        all_.push_back(std::move(number));
    }
    return prefix_ + name;
}

std::string KernelNumbers::stride(int klass, int dim) {
    const std::int64_t stride = job_.stride(klass, dim);
    if (stride == 0 || stride == 1) return stride == 1 ? "1" : "0";
    return name(cat("s", klass, "_", dim), stride);
}

std::string KernelNumbers::step(const std::string& position, int klass, int dim) {
    if (dim < 0) return {};
    const std::string by = stride(klass, dim);
    if (by == "0") return {};
    return by == "1" ? " + " + position : cat(" + ", position, " * ", by);
}

}  // namespace dlprim::pointwise
