// SPDX-License-Identifier: MIT
// Tables of tiles whose entries a tuning names by what they are: rows, columns, threads.
#pragma once

#include "base/text.hpp"
#include "engine/engine.hpp"

#include <algorithm>

namespace dlprim {

/// The entry of a table whose named(), a part of a Tuning, has the tuning's values. `more` is
/// handed to named(). Throws Error(invalid_argument) where there is none, which no tuning of
/// tunings_of() leads to.
template <typename Tiles, typename... More>
typename Tiles::value_type named_tile(const Tiles& tiles, const Tuning& tuning,
                                      const More&... more) {
    for (const auto& tile : tiles) {
        const Tuning part = tile.named(more...);
        // Both are in order of their names.
        if (std::includes(tuning.begin(), tuning.end(), part.begin(), part.end())) return tile;
    }
    fail(ErrorKind::invalid_argument, "there is no tile of {", text_of(tuning), "}");
}

/// What a tile sets, and more.
inline Tuning with(Tuning tile, const Tuning& more) {
    tile.insert(more.begin(), more.end());
    return tile;
}

}  // namespace dlprim
