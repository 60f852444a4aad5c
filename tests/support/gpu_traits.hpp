// SPDX-License-Identifier: MIT
// Traits of GPUs that are not here, for tests of what engines and the planner decide.
#pragma once

#include <dlprim/context.hpp>

#include <cstdint>

namespace dlprim::testing {

/// `traits` with work-items and work-groups as a GPU has them, and without matrix units.
inline Traits as_gpu(Traits traits, int compute_units = 100) {
    traits.host = traits.wide_vectors = false;
    traits.vector_width = 1;
    traits.max_work_group = 1024;
    traits.compute_units = compute_units;
    return traits;
}

/// `traits` with matrix units that have `kib` KiB of local memory and take both 16-bit types.
inline Traits with_matrix_units(Traits traits, bool wgmma, bool mma, std::uint64_t kib) {
    traits.wgmma = wgmma;
    traits.mma = mma;
    traits.mma_local_bytes = kib << 10;
    traits.matrix_fp16 = traits.matrix_bf16 = true;
    return traits;
}

}  // namespace dlprim::testing
