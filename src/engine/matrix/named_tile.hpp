// SPDX-License-Identifier: MIT
// Tables of tiles. A tuning names a table's entry by its properties, such as rows, columns and
// threads.
#pragma once

#include "base/text.hpp"
#include "engine/engine.hpp"

#include <algorithm>

namespace dlprim {

/// Returns the entry of a table whose named() agrees with the tuning. named() returns a part of a
/// Tuning and takes `more` as its arguments. Throws Error(invalid_argument) if no entry agrees.
/// This never happens for a tuning from tunings_of().
template <typename Tiles, typename... More>
typename Tiles::value_type named_tile(const Tiles& tiles, const Tuning& tuning,
                                      const More&... more) {
    for (const auto& tile : tiles) {
        const Tuning part = tile.named(more...);
        // std::includes needs sorted ranges. Both are sorted by name.
        if (std::includes(tuning.begin(), tuning.end(), part.begin(), part.end())) return tile;
    }
    fail(ErrorKind::invalid_argument, "there is no tile of {", text_of(tuning), "}");
}

/// Returns a tile's part of a tuning, joined with `more`.
inline Tuning with(Tuning tile, const Tuning& more) {
    tile.insert(more.begin(), more.end());
    return tile;
}

}  // namespace dlprim
