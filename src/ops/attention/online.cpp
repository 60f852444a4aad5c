// SPDX-License-Identifier: MIT
// attention.online: attention on any GPU (kernels/attention/online.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/attention/spans.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace dlprim::attention {

namespace {

constexpr const char* source = "attention/online.cl";
constexpr std::int64_t columns = 16;           // of work-items
constexpr std::int64_t item_rows = 4;          // of a work-item
constexpr std::int64_t online_features = 256;  // most of them

struct Tile {
    std::int64_t rows, keys;
    std::int64_t items() const { return rows / item_rows * columns; }
};
/// The larger a tile, the fewer times keys and values are read.
constexpr std::array<Tile, 4> tiles{{{64, 32}, {32, 32}, {32, 16}, {16, 16}}};

std::int64_t local_bytes(const Heads& heads, const Tile& tile) {
    const std::int64_t depth = padded(heads.depth) + 1;
    return 4 * (tile.rows * depth + tile.keys * std::max(depth, padded(heads.features)) +
                tile.rows * (tile.keys + 1) + tile.rows * (columns + 1));
}

std::optional<Tile> tile_of(const Traits& device, const Heads& heads) {
    for (const Tile& tile : tiles)
        if (static_cast<std::uint64_t>(tile.items()) <= device.max_work_group &&
            static_cast<std::uint64_t>(local_bytes(heads, tile)) <= device.local_bytes)
            return tile;
    return std::nullopt;
}

class Online : public Engine {
  public:
    Online() : Engine("attention.online", forward_type, false) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_heads(problem, online_features, false); !verdict)
            return verdict;
        const Heads heads = heads_of(problem);
        if (!tile_of(device, heads))
            return Verdict::no(cat("it needs work-groups of ", tiles.back().items(),
                                   " work-items and ", local_bytes(heads, tiles.back()),
                                   " bytes of local memory, and the device has ",
                                   device.max_work_group, " and ", device.local_bytes));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Tile tile = tile_of(device, heads).value_or(tiles.back());
        // What a tile computes beyond the last query, position and feature takes time, too.
        const double waste = static_cast<double>(padded(heads.depth) + padded(heads.features)) /
                             static_cast<double>(heads.depth + heads.features) *
                             static_cast<double>(ceil_div(heads.length, tile.rows) * tile.rows) /
                             static_cast<double>(heads.length);
        // A CPU runs such work-groups one item after the other.
        const double share = device.wide_vectors ? 0.02 : tile.rows >= 64 ? 0.3 : 0.2;
        const double groups = static_cast<double>(ceil_div(heads.length, tile.rows) * heads.count);
        const double busy = std::min(1.0, groups / std::max(1, device.compute_units));
        return roofline_seconds(device, problem, heads.flops() * waste, share * busy, 0.5);
    }

    std::vector<std::string> sources() const override { return {source, "attention/spans.cl"}; }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return spans_bytes(heads_of(problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Heads heads = heads_of(problem);
        const Tile tile = tile_of(context.traits(), heads).value();
        auto launch = std::make_unique<KernelLaunch>();
        add_spans_call(*launch, context, problem, heads);
        KernelCall call(
            context.build({source, kernel_source(source),
                           cat(heads_options(heads), define("ROWS", tile.rows),
                               define("KEYS", tile.keys), define("DEPTH", padded(heads.depth)),
                               define("FEATURES", padded(heads.features)))}),
            "attention_online",
            group_range(ceil_div(heads.length, tile.rows) * heads.count, tile.items()));
        call.tensor("q", 0).tensor("k", 1).tensor("v", 2);
        call.tensor("y", heads.results).tensor("lse", heads.results + 1);
        bind_heads(call, heads)
            .size("depth", heads.depth)
            .scalar("scale", static_cast<float>(heads.scale * log2_e));
        launch->add(std::move(call));
        return launch;
    }
};

}  // namespace

void add_online(EngineRegistry& engines) {
    engines.add(std::make_unique<Online>());
}

}  // namespace dlprim::attention
