// SPDX-License-Identifier: MIT
// See dims.hpp.
#include "ops/dims.hpp"

#include <ATen/WrapDimUtilsMulti.h>

namespace dlprim_torch {

Dims dims_of(c10::IntArrayRef list, std::int64_t rank) {
    if (list.empty()) return rank == 0 ? Dims() : Dims(~std::uint64_t{0} >> (64 - rank));
    return at::dim_list_to_bitset(list, static_cast<std::size_t>(rank));
}

Dims all_but(std::int64_t dim, std::int64_t rank) {
    return dims_of({}, rank).reset(static_cast<std::size_t>(dim));
}

std::string axes_of(const Dims& dims, std::int64_t rank) {
    std::string text = "[";
    for (std::int64_t d = 0; d < rank; ++d)
        if (dims[static_cast<std::size_t>(d)])
            text.append(text.size() > 1 ? "," : "").append(std::to_string(d));
    return text + "]";
}

std::vector<std::int64_t> result_sizes(c10::IntArrayRef sizes, const Dims& dims, bool keep_dim) {
    std::vector<std::int64_t> kept;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (!dims[d])
            kept.push_back(sizes[d]);
        else if (keep_dim)
            kept.push_back(1);
    }
    return kept;
}

}  // namespace dlprim_torch
