// SPDX-License-Identifier: MIT
// Runs the kernel that tries a matrix unit on a device, emulated on the host. Both of its products
// must be exact, and both must be wrong if the instructions mistake one 16-bit type for the other.
// The test is built for KIND and LOCAL_BYTES, which are defines of kernels/probe/mma.cl.
#include "work_group.hpp"

#include <array>
#include <cstdio>

#if MMA
#define PROBE "probe/mma.inc"
#else
#define PROBE "probe/wgmma.inc"
#endif

namespace product {
#include PROBE
}

// The unit's instructions with the two 16-bit types exchanged.
#if MMA
#undef MMA_ADD_1
#undef MMA_ADD_2
#define MMA_ADD_1(d, i, a, b0, b1) multiply_matrices((d) + (i), a, b0, b1, 2);
#define MMA_ADD_2(d, i, a, b0, b1) multiply_matrices((d) + (i), a, b0, b1, 1);
#else
#undef UNIT_64
#undef HALF_64
#define UNIT_64(d, a, b, first, ta, tb) multiply_ahead(d, a, b, first, 64, ta, tb, 2)
#define HALF_64(d, a, b, ta, tb) multiply_ahead(d, a, b, false, 64, ta, tb, 3 - KIND)
#endif
namespace mistaken {
#include PROBE
}

namespace {

/// Returns how many of each product's 4096 sums are wrong.
std::array<int, 2> wrong(void (*probe)(float*, ulong)) {
    // The products, and space for the tiles.
    std::vector<float4> y(4096, float4{NAN, NAN, NAN, NAN});
    auto* const made = reinterpret_cast<float*>(y.data());
    run_kernel(1, 1, 128, [&] { probe(made, 0); });
    std::array<int, 2> count{};
    for (int i = 0; i < 8192; ++i) {
        int exact = 0;
        for (int k = 0; k < 64; ++k)
            exact += ((3 * (i / 64 % 64) + 5 * k) % 7 - 3) * ((2 * k + 11 * (i % 64)) % 5 - 2);
        count[static_cast<std::size_t>(i / 4096)] += !(made[i] == static_cast<float>(exact));
    }
    return count;
}

}  // namespace

int main() {
    bool passed = true;
    for (int order = 0; order < ORDERS; ++order) {
        const char* const when = set_order(order);
        const auto right = wrong(product::probe), other = wrong(mistaken::probe);
        std::printf("%s: %d and %d of 4096 are wrong, by the other type %d and %d\n", when,
                    right[0], right[1], other[0], other[1]);
        passed = passed && right[0] + right[1] == 0 && other[0] > 0 && other[1] > 0;
    }
    return passed ? 0 : 1;
}
