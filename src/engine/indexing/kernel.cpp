// SPDX-License-Identifier: MIT
// The arguments and defines of kernels that include engine/indexing.clh.
#include "engine/indexing/kernel.hpp"

#include "base/text.hpp"

namespace dlprim {

std::string indexing_defines(const Indexing& indexing, DType index_type) {
    return cat(" -DINDEX=", index_type == DType::i64 ? "long" : "int",
               " -DDIGITS=", indexing.digits.size(), " -DCOMPONENTS=", indexing.sizes.size(),
               " -DGROUPED=", indexing.group == 1 ? 0 : 1);
}

void set_indexing(KernelCall& call, ContextImpl& context, const Indexing& indexing, int operand,
                  DType index_type) {
    call.refuses(context)
        .tensor("indices", operand, size_of(index_type))
        .scalar("from_end", std::int32_t{indexing.from_end})
        .scalar("period", indexing.period)
        .scalar("group", indexing.group);
    const std::size_t first = 8 - indexing.digits.size();
    for (std::size_t d = 0; d < 8; ++d) {
        const bool used = d >= first;
        call.scalar(cat('s', d), used ? indexing.digits[d - first] : std::int64_t{1});
        call.scalar(cat('f', d), used ? indexing.strides[d - first] : std::int64_t{0});
        const bool indexed = d < indexing.sizes.size();
        call.scalar(cat('c', d), indexed ? indexing.sizes[d] : std::int64_t{1});
        call.scalar(cat('m', d), indexed ? indexing.multiples[d] : std::int64_t{0});
    }
}

std::int64_t slot_step(const Traits& device, const Indexing& indexing) {
    return device.wide_vectors && indexing.slice > 1 ? 64 : 1;
}

}  // namespace dlprim
