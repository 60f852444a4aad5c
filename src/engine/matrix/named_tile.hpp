// SPDX-License-Identifier: MIT
// Tables of tiles. A tuning names an entry by its properties: rows, columns, threads.
#pragma once

#include "base/text.hpp"
#include "engine/engine.hpp"

#include <algorithm>

namespace dlprim {

/// The entry of a table whose named() agrees with the tuning. named() returns a part of a Tuning,
/// and gets `more` as arguments. Throws Error(invalid_argument) if there is none, which never
/// happens for a tuning of tunings_of().
template <typename Tiles, typename... More>
typename Tiles::value_type named_tile(const Tiles& tiles, const Tuning& tuning,
                                      const More&... more) {
    for (const auto& tile : tiles) {
        const Tuning part = tile.named(more...);
        // Both are sorted by name.
        if (std::includes(tuning.begin(), tuning.end(), part.begin(), part.end())) return tile;
    }
    fail(ErrorKind::invalid_argument, "there is no tile of {", text_of(tuning), "}");
}

/// What a tile sets, together with `more`.
inline Tuning with(Tuning tile, const Tuning& more) {
    tile.insert(more.begin(), more.end());
    return tile;
}

}  // namespace dlprim
