// SPDX-License-Identifier: MIT
// The table of rows, which generate.py makes from rows.yaml, and its registration.
#include "ops/row.hpp"

namespace dlprim_torch {
namespace {

#include "rows.inc"

torch::CppFunction kernel_of(const Row& row) {
    switch (row.kind) {
        case Kind::reduction:
            return reduction_kernel(row);
        case Kind::loss:
            return loss_kernel(row);
        default:
            return elementwise_kernel(row);
    }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    for (const Row& row : rows)
        for (const char* const overload : row.overloads) m.impl(overload, kernel_of(row));
}

}  // namespace

std::span<const Row> all_rows() {
    return rows;
}

}  // namespace dlprim_torch
