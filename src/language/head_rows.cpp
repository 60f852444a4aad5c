// SPDX-License-Identifier: MIT
// Rows of queries and keys.
#include "language/head_rows.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::language {

namespace {

/// Copies rows of each head to other places: `to_neighbours` or back.
void reorder(float* values, std::int64_t rows, std::int64_t columns, std::int64_t head,
             bool to_neighbours) {
    if (head > rows) return;
    std::vector<float> from(static_cast<std::size_t>(head * columns));
    for (std::int64_t first = 0; first + head <= rows; first += head) {
        float* const to = values + first * columns;
        std::copy_n(to, from.size(), from.begin());
        for (std::int64_t row = 0; row < head; ++row) {
            const std::int64_t half = row / 2 + row % 2 * (head / 2);
            const std::int64_t source = to_neighbours ? half : row;
            const std::int64_t target = to_neighbours ? row : half;
            std::copy_n(from.begin() + source * columns, columns, to + target * columns);
        }
    }
}

}  // namespace

bool interleaves(const Architecture& architecture, const std::string& model,
                 const Architecture::HuggingFace::Source& source) {
    const Attr* interleaved = architecture.models.at(model).find("interleaved");
    return source.halves && interleaved && std::get<bool>(*interleaved);
}

void interleave_halves(float* values, std::int64_t rows, std::int64_t columns, std::int64_t head) {
    reorder(values, rows, columns, head, true);
}

void part_halves(float* values, std::int64_t rows, std::int64_t columns, std::int64_t head) {
    reorder(values, rows, columns, head, false);
}

}  // namespace dlprim::language
