// SPDX-License-Identifier: MIT
// The table of rows, which generate.py makes from rows.yaml, and its registration.
#include "ops/row.hpp"

namespace dlprim_torch {
namespace {

#include "rows.inc"

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    for (const Row& row : rows)
        for (const char* const overload : row.overloads)
            m.impl(overload, row.reduces ? reduction_kernel(row) : elementwise_kernel(row));
}

}  // namespace

std::span<const Row> all_rows() {
    return rows;
}

}  // namespace dlprim_torch
