// SPDX-License-Identifier: MIT
// What the tests of eager calls share: tensors of random numbers, and counts of launches.
#pragma once

#include "net/support.hpp"

#include <utility>

namespace dlprim::testing {

inline Tensor random_tensor(const Context& device, const Shape& shape, unsigned seed) {
    return Tensor(device, shape, random_floats(static_cast<std::size_t>(shape.numel()), seed));
}

/// The launches that `work` enqueues.
template <typename Work>
std::uint64_t launches_of(const Context& device, Work&& work) {
    device.finish();
    const std::uint64_t before = device.counters().launches;
    work();
    device.finish();
    return device.counters().launches - before;
}

/// The same at a second call, when plans are made and weights packed.
template <typename Work>
std::uint64_t launches_again(const Context& device, Work&& work) {
    work();
    return launches_of(device, std::forward<Work>(work));
}

}  // namespace dlprim::testing
