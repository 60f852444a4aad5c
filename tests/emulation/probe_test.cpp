// SPDX-License-Identifier: MIT
// The kernel that tries the unit on a device, emulated on the host: both its products are exact.
// Built for LOCAL_BYTES, as kernels/probe/mma.cl has it.
#include "work_group.hpp"

#include <cstdio>

namespace product {
#if MMA
#include "probe/mma.inc"
#else
#include "probe/wgmma.inc"
#endif
}  // namespace product

int main() {
    int wrong = 0;
    for (int order = 0; order < ORDERS; ++order) {
        const char* const when = set_order(order);
        // The products, and room for the tiles.
        std::vector<float4> y(4096, float4{NAN, NAN, NAN, NAN});
        auto* const made = reinterpret_cast<float*>(y.data());
        run_kernel(1, 1, 128, [&] { product::probe(made, 0); });
        int wrong_here = 0;
        for (int i = 0; i < 8192; ++i) {
            int exact = 0;
            for (int k = 0; k < 64; ++k)
                exact += ((3 * (i / 64 % 64) + 5 * k) % 7 - 3) * ((2 * k + 11 * (i % 64)) % 5 - 2);
            wrong_here += !(made[i] == static_cast<float>(exact));
        }
        std::printf("%s: %d of 8192 are wrong\n", when, wrong_here);
        wrong += wrong_here;
    }
    return wrong == 0 ? 0 : 1;
}
