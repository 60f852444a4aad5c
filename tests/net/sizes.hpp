// SPDX-License-Identifier: MIT
// Checks that sizes after the first ones compile nothing, for tests of sizes.
#pragma once

#include "base/text.hpp"
#include "net/support.hpp"

#include <cstdint>
#include <vector>

namespace dlprim::testing {

constexpr int random_sizes = 50;

struct Shapes {
    std::vector<Shape> inputs, params;
};

inline std::vector<Tensor> tensors(const Context& device, const std::vector<Shape>& shapes,
                                   unsigned seed) {
    std::vector<Tensor> all;
    all.reserve(shapes.size());
    for (const Shape& shape : shapes)
        all.emplace_back(device, shape,
                         random_floats(static_cast<std::size_t>(shape.numel()), ++seed));
    return all;
}

/// The programs that the device has made, by its counters.
inline std::uint64_t programs_of(const Context& device) {
    device.finish();
    const Counters now = device.counters();
    return now.compiles + now.cache_hits;
}

/// The first sizes of a row, which may compile, and those that must not.
template <typename AnySizes>
struct Runs {
    std::vector<AnySizes> first, random;
};

/// Runs `sizes`. `run` computes with what it has, and `fresh` on the context that it gets.
template <typename Row, typename AnySizes, typename Run, typename Fresh>
void check_sizes(const Context& used, const Row& row, const Runs<AnySizes>& sizes, Run&& run,
                 Fresh&& fresh) {
    const Context host("host");
    for (const AnySizes& one : sizes.first) bits(run(one));
    std::uint64_t programs = programs_of(used);
    for (const AnySizes& one : sizes.random) {
        INFO(row.name << ": " << one.str());
        const Tensor found = run(one);
        CHECK(programs_of(used) == programs);
        programs = programs_of(used);
        CHECK((bits(found) == bits(fresh(Context(used.info().id), one))));
        check_close(found.to_floats(), doubles(fresh(host, one).to_floats()), row.tolerance);
    }
}

}  // namespace dlprim::testing
