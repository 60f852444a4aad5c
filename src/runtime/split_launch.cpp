// SPDX-License-Identifier: MIT
// Splitting of launches: which texts allow it, and the parts of a range.
#include "runtime/split_launch.hpp"

#include <algorithm>

namespace dlprim {

namespace {

constexpr std::string_view group_offset =
    "#define get_group_id(d) (get_group_id(d) + get_global_offset(d) / get_local_size(d))\n";

bool has(std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
}

/// The work-items that parts are made of along a dimension: a work-group, or as many as a driver
/// that chooses groups itself may take for one.
std::size_t unit(const NDRange& range, std::size_t dimension) {
    constexpr std::size_t of_driver = 256;
    return range.local[0] == 0 ? of_driver : range.local[dimension];
}

std::size_t units(const NDRange& range, std::size_t dimension) {
    const std::size_t items = unit(range, dimension);
    return (range.global[dimension] + items - 1) / items;
}

}  // namespace

thread_local double ExpectedSeconds::now_ = 0;

bool can_be_split(std::string_view text) {
    return !has(text, "get_num_groups") && !has(text, "get_global_size") &&
           !has(text, "get_global_linear_id");
}

std::string with_group_offsets(const std::string& text) {
    if (!can_be_split(text) || !has(text, "get_group_id")) return text;
    return std::string(group_offset) + text;
}

bool has_group_offsets(std::string_view text) {
    return text.starts_with(group_offset);
}

std::vector<PartRange> split_range(const PartRange& range, std::size_t parts) {
    std::size_t longest = 0;
    for (std::size_t d = 1; d < static_cast<std::size_t>(range.dims); ++d)
        if (units(range, d) > units(range, longest)) longest = d;
    const std::size_t count = units(range, longest), cuts = std::min(parts, count);
    if (cuts <= 1) return {range};
    std::vector<PartRange> all;
    for (std::size_t i = 0; i < cuts; ++i) {
        const std::size_t begin = count * i / cuts * unit(range, longest);
        const std::size_t end = count * (i + 1) / cuts * unit(range, longest);
        PartRange part = range;
        part.offset[longest] += begin;
        part.global[longest] = std::min(end, range.global[longest]) - begin;
        // Where this dimension has too few work-groups, the others are cut, too.
        for (const PartRange& piece : split_range(part, (parts + cuts - 1) / cuts))
            all.push_back(piece);
    }
    return all;
}

}  // namespace dlprim
