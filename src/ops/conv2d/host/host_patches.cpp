// SPDX-License-Identifier: MIT
// Packs image patches, and stores result tiles to planes.
#include "ops/conv2d/host/host_patches.hpp"

#include "engine/host_gemm_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace dlprim::conv2d {

namespace {

using std::int64_t;

// Consecutive grid positions of one image and row.
struct Run {
    int64_t image, y, x;
    int at, length;
};

// Divides [first, first + count) of the flattened (image, y, x) grid into runs of at most `limit`,
// and calls visit for each.
template <typename Visit>
void for_each_run(const Gather& g, int64_t first, int64_t count, int64_t limit,
                  const Visit& visit) {
    int64_t x = first % g.grid_w, y = first / g.grid_w % g.grid_h;
    int64_t image = first / (g.grid_w * g.grid_h);
    for (int64_t at = 0; at < count;) {
        const int64_t length = std::min({g.grid_w - x, count - at, limit});
        visit(Run{image, y, x, static_cast<int>(at), static_cast<int>(length)});
        at += length;
        x += length;
        if (x < g.grid_w) continue;
        x = 0;
        if (++y < g.grid_h) continue;
        y = 0;
        ++image;
    }
}

// The positions of a run whose source is inside a row of `size` elements. The first source is at
// `start`, and consecutive ones are `step` apart.
struct Inside {
    int begin, end;
};
Inside inside(int64_t start, int64_t step, int64_t size, int length) {
    const int64_t begin = start >= 0 ? 0 : (-start + step - 1) / step;
    const int64_t end = start >= size ? 0 : (size - start + step - 1) / step;
    const int b = static_cast<int>(std::min<int64_t>(begin, length));
    return {b, static_cast<int>(std::clamp<int64_t>(end, b, length))};
}

// Copies `length` elements that are `step` apart. A full panel's width uses a copy of fixed size,
// which is faster.
inline void copy_run(float* to, const float* from, int64_t step, int length) {
    if (step == 1) {
        if (length == host_gemm_max_columns)
            std::memcpy(to, from, host_gemm_max_columns * sizeof(float));
        else
            for (int i = 0; i < length; ++i) to[i] = from[i];
    } else {
        for (int i = 0; i < length; ++i) to[i] = from[i * step];
    }
}

}  // namespace

Gather forward_gather(const Geometry& g) {
    Gather gather{};
    gather.images = g.n, gather.groups = g.groups;
    gather.channels = g.group_in(), gather.h = g.h, gather.w = g.w;
    gather.results = g.group_out();
    gather.grid_h = gather.plane_h = g.oh, gather.grid_w = gather.plane_w = g.ow;
    gather.step_y = g.sh, gather.step_x = g.sw;
    gather.spread_y = gather.spread_x = 1;
    for (int64_t ky = 0; ky < g.kh; ++ky)
        for (int64_t kx = 0; kx < g.kw; ++kx)
            gather.taps.push_back({ky * g.dh - g.pt, kx * g.dw - g.pl, ky * g.kw + kx});
    if (g.pointwise()) {  // a plane can be treated as one long row
        gather.w = gather.grid_w = gather.plane_w = g.h * g.w;
        gather.h = gather.grid_h = gather.plane_h = 1;
    }
    return gather;
}

std::vector<Gather> backward_data_gathers(const Geometry& g) {
    Gather whole{};
    whole.images = g.n, whole.groups = g.groups;
    whole.channels = g.group_out(), whole.h = g.oh, whole.w = g.ow;
    whole.results = g.group_in();
    whole.plane_h = g.h, whole.plane_w = g.w;
    whole.step_y = whole.step_x = 1;
    whole.spread_y = g.sh, whole.spread_x = g.sw;
    if (g.pointwise()) {
        whole.w = whole.plane_w = whole.grid_w = g.h * g.w;
        whole.h = whole.plane_h = whole.grid_h = 1;
        whole.taps = {{0, 0, 0}};
        return {whole};
    }
    std::vector<Gather> gathers;
    for (int64_t py = 0; py < std::min(g.sh, g.h); ++py)
        for (int64_t px = 0; px < std::min(g.sw, g.w); ++px) {
            Gather phase = whole;
            phase.origin_y = py, phase.origin_x = px;
            phase.grid_h = (g.h - py + g.sh - 1) / g.sh;
            phase.grid_w = (g.w - px + g.sw - 1) / g.sw;
            for (int64_t ky = 0; ky < g.kh; ++ky)
                for (int64_t kx = 0; kx < g.kw; ++kx) {
                    const int64_t y = py + g.pt - ky * g.dh, x = px + g.pl - kx * g.dw;
                    if (y % g.sh == 0 && x % g.sw == 0)
                        phase.taps.push_back({y / g.sh, x / g.sw, ky * g.kw + kx});
                }
            gathers.push_back(std::move(phase));
        }
    return gathers;
}

void PatchSource::pack(int64_t batch, int64_t first, int count, int width, int64_t k_first,
                       int64_t depth, float* to) const {
    std::array<Run, host_gemm_max_columns> runs;
    int run_count = 0;
    for_each_run(g_, first, count, count,
                 [&](const Run& run) { runs[static_cast<std::size_t>(run_count++)] = run; });
    const auto tap_count = static_cast<int64_t>(g_.taps.size());
    const int64_t plane = g_.h * g_.w, image_size = plane * g_.channels * g_.groups;
    int64_t channel = k_first / tap_count, tap = k_first % tap_count;
    for (int64_t p = 0; p < depth; ++p, to += width) {
        const Tap& t = g_.taps[static_cast<std::size_t>(tap)];
        const float* source = data_ + (batch * g_.channels + channel) * plane;
        for (int r = 0; r < run_count; ++r) {
            const Run& run = runs[static_cast<std::size_t>(r)];
            float* out = to + run.at;
            const int64_t y = run.y * g_.step_y + t.y, x = run.x * g_.step_x + t.x;
            if (y < 0 || y >= g_.h) {
                std::fill_n(out, run.length, 0.0f);
                continue;
            }
            const float* row = source + run.image * image_size + y * g_.w;
            if (x >= 0 && x + (run.length - 1) * g_.step_x < g_.w) {
                copy_run(out, row + x, g_.step_x, run.length);
                continue;
            }
            const Inside in = inside(x, g_.step_x, g_.w, run.length);
            std::fill_n(out, in.begin, 0.0f);
            copy_run(out + in.begin, row + x + in.begin * g_.step_x, g_.step_x, in.end - in.begin);
            std::fill_n(out + in.end, run.length - in.end, 0.0f);
        }
        std::fill(to + count, to + width, 0.0f);
        if (++tap == tap_count) {
            tap = 0;
            ++channel;
        }
    }
}

void TransposedWeightSource::pack(int64_t batch, int64_t first, int count, int width,
                                  int64_t k_first, int64_t depth, float* to) const {
    const auto tap_count = static_cast<int64_t>(g_.taps.size());
    for (int64_t p = 0; p < depth; ++p, to += width) {
        const int64_t channel = (k_first + p) / tap_count, tap = (k_first + p) % tap_count;
        const float* from = weight_ +
                            ((batch * g_.channels + channel) * g_.results + first) * area_ +
                            g_.taps[static_cast<std::size_t>(tap)].index;
        for (int i = 0; i < count; ++i) to[i] = from[i * area_];
        std::fill(to + count, to + width, 0.0f);
    }
}

void PlaneSink::store(const GemmTile& tile) const {
    const int64_t plane = g_.plane_h * g_.plane_w;
    for_each_run(g_, tile.column, tile.columns, tile.columns, [&](const Run& run) {
        const int64_t position =
            (run.y * g_.spread_y + g_.origin_y) * g_.plane_w + run.x * g_.spread_x + g_.origin_x;
        for (int i = 0; i < tile.rows; ++i) {
            const int64_t channel = tile.batch * g_.results + tile.row + i;
            const int64_t at = (run.image * g_.groups * g_.results + channel) * plane + position;
            const float* from = tile.sums + i * tile.ld + run.at;
            float* to = result_ + at;
            const float start = tile.first_block && bias_ ? bias_[channel] : 0.0f;
            if (g_.spread_x == 1) {
                if (tile.first_block)
                    for (int j = 0; j < run.length; ++j) to[j] = start + from[j];
                else
                    for (int j = 0; j < run.length; ++j) to[j] += from[j];
                if (tile.last_block && !epilogue_.empty()) epilogue_.apply(to, at, run.length);
                continue;
            }
            for (int j = 0; j < run.length; ++j) {
                float& v = to[j * g_.spread_x];
                v = (tile.first_block ? start : v) + from[j];
                if (tile.last_block && !epilogue_.empty())
                    epilogue_.apply(&v, at + j * g_.spread_x, 1);
            }
        }
    });
}

void OutputGradientSource::pack(int64_t batch, int64_t first, int count, int width, int64_t k_first,
                                int64_t depth, float* to) const {
    const int64_t area = g_.oh * g_.ow;
    int64_t image = k_first / area, position = k_first % area;
    for (int64_t p = 0; p < depth;) {
        const int64_t length = std::min(area - position, depth - p);
        pack_rows(dy_ + (image * g_.out + batch * g_.group_out() + first) * area + position, area,
                  count, width, length, to);
        to += length * width;
        p += length;
        position += length;
        if (position == area) {
            position = 0;
            ++image;
        }
    }
}

void TransposedPatchSource::pack(int64_t batch, int64_t first, int count, int width,
                                 int64_t k_first, int64_t depth, float* to) const {
    const auto tap_count = static_cast<int64_t>(g_.taps.size());
    const int64_t plane = g_.h * g_.w, image_size = plane * g_.channels * g_.groups;
    // With a single tap at distance 0 and step 1, columns are channels and K runs along their
    // planes.
    const bool straight = tap_count == 1 && g_.step_x == 1 && g_.step_y == 1 && g_.taps[0].x == 0 &&
                          g_.taps[0].y == 0 && g_.grid_w <= g_.w && g_.grid_h <= g_.h;
    for_each_run(g_, k_first, depth, 64, [&](const Run& run) {
        float* block = to + static_cast<int64_t>(run.at) * width;
        if (straight) {
            pack_rows(x_ + run.image * image_size + (batch * g_.channels + first) * plane +
                          run.y * g_.w + run.x,
                      plane, count, width, run.length, block);
            return;
        }
        int64_t channel = first / tap_count, tap = first % tap_count;
        for (int j = 0; j < width; ++j) {
            float* out = block + j;
            int begin = 0, end = 0;
            if (j < count) {
                const Tap& t = g_.taps[static_cast<std::size_t>(tap)];
                const int64_t y = run.y * g_.step_y + t.y, x = run.x * g_.step_x + t.x;
                if (y >= 0 && y < g_.h) {
                    const Inside in = inside(x, g_.step_x, g_.w, run.length);
                    begin = in.begin, end = in.end;
                    const float* from = x_ + run.image * image_size +
                                        (batch * g_.channels + channel) * plane + y * g_.w + x;
                    for (int q = begin; q < end; ++q) out[q * width] = from[q * g_.step_x];
                }
                if (++tap == tap_count) {
                    tap = 0;
                    ++channel;
                }
            }
            for (int q = 0; q < begin; ++q) out[q * width] = 0;
            for (int q = end; q < run.length; ++q) out[q * width] = 0;
        }
    });
}

}  // namespace dlprim::conv2d
