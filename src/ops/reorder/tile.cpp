// SPDX-License-Identifier: MIT
// Reorder: sizes of tiles; see tile.hpp.
#include "ops/reorder/tile.hpp"

namespace dlprim::reorder {

namespace {

/// Work-items that access memory together. Local memory has as many banks of 4 bytes.
constexpr std::int64_t warp = 32;

std::int64_t round_up(std::int64_t n, std::int64_t step) {
    return (n + step - 1) / step * step;
}

/// Channels of a tile: at most 32, which is a line of 128 bytes of floats. Tiles divide the
/// channels evenly, at multiples of 8. If a side has blocks, a tile has one block of channels, so
/// that these have equal steps.
std::int64_t channels_of(const Problem& problem) {
    const std::int64_t channels = std::max<std::int64_t>(problem.inputs[0].shape[1], 1);
    for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]})
        if (operand->layout.kind == Layout::Kind::blocked) return common_block(problem);
    const std::int64_t tiles = (channels + 31) / 32, even = (channels + tiles - 1) / tiles;
    return channels < 8 ? channels : round_up(even, 8);
}

/// Pixels of a tile: the longest run of up to `most` with which tiles cover at most 15% more pixels
/// than with runs of 32.
std::int64_t pixels_of(std::int64_t pixels, std::int64_t most) {
    std::int64_t run = warp;
    while (run * 2 <= most && round_up(pixels, run * 2) * 20 <= round_up(pixels, warp) * 23)
        run *= 2;
    return run;
}

}  // namespace

Tile tile_of(const Traits& device, const Problem& problem) {
    if (device.wide_vectors || device.max_work_group < static_cast<std::uint64_t>(warp)) return {};
    const Shape& shape = problem.inputs[0].shape;
    const auto bytes = static_cast<std::int64_t>(size_of(problem.inputs[0].dtype));
    Tile tile;
    tile.channels = channels_of(problem);
    // `spread` elements after each channel of the tile let the work-items of a warp use different
    // banks. If a warp accesses the tile along channels, its first `channels` work-items share a
    // pixel, and the others have the next pixels.
    const std::int64_t spread =
        std::max<std::int64_t>(1, warp / std::min(tile.channels, warp) * 4 / bytes);
    const std::int64_t elements = bytes > 4 ? 2048 : 4096;
    tile.pixels =
        pixels_of(shape[2] * shape[3], std::min<std::int64_t>(512, elements / tile.channels));
    const auto local = static_cast<std::int64_t>(device.local_bytes);
    while (tile.channels * (tile.pixels + spread) * bytes > local && tile.pixels > warp)
        tile.pixels /= 2;
    tile.pitch = tile.pixels + spread;
    if (tile.channels * tile.pitch * bytes > local) return {};
    // Each work-item moves at least eight elements, so that enough reads are in flight.
    const auto limit =
        static_cast<std::int64_t>(std::min<std::uint64_t>(device.max_work_group, 256));
    tile.group = warp;
    while (tile.group * 2 <= limit && tile.group * 16 <= tile.channels * tile.pixels)
        tile.group *= 2;
    return tile;
}

}  // namespace dlprim::reorder
