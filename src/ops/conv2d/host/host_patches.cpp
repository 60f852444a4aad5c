// SPDX-License-Identifier: MIT
// Packs image patches, and stores result tiles to planes.
#include "ops/conv2d/host/host_patches.hpp"

#include "engine/host_gemm_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dlprim::conv2d {

namespace {

using std::int64_t;

// Consecutive grid positions of one image and row.
struct Run {
    int64_t image, y, x;
    int at, length;
};

// Divides [first, first + count) of the flattened (image, y, x) grid into runs of at most `limit`,
// and calls visit for each. Columns beyond the width of the grid are left out.
template <typename Visit>
void for_each_run(const Gather& g, int64_t first, int64_t count, int64_t limit,
                  const Visit& visit) {
    int64_t x = first % g.pitch, y = first / g.pitch % g.grid_h;
    int64_t image = first / (g.pitch * g.grid_h);
    for (int64_t at = 0; at < count;) {
        const int64_t length = std::min({g.pitch - x, count - at, limit});
        if (x < g.grid_w)
            visit(Run{image, y, x, static_cast<int>(at),
                      static_cast<int>(std::min(length, g.grid_w - x))});
        at += length;
        x += length;
        if (x < g.pitch) continue;
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

// Copies elements that are `step` apart.
void copy_apart(const float* from, int64_t step, int64_t count, float* to) {
    if (step == 1)
        std::copy_n(from, count, to);
    else if (step == 2)  // which compilers make vectors of
        for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
    else
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

// a / b rounded down, for b > 0.
int64_t floor_quotient(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((b - 1 - a) / b);
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
    gather.pitch = gather.grid_w;
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
        whole.pitch = whole.grid_w;
        return {whole};
    }
    std::vector<Gather> gathers;
    for (int64_t py = 0; py < std::min(g.sh, g.h); ++py)
        for (int64_t px = 0; px < std::min(g.sw, g.w); ++px) {
            Gather phase = whole;
            phase.origin_y = py, phase.origin_x = px;
            phase.grid_h = (g.h - py + g.sh - 1) / g.sh;
            phase.grid_w = phase.pitch = (g.w - px + g.sw - 1) / g.sw;
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

PatchLayout::PatchLayout(Gather& gather) {
    if (gather.taps.empty()) return;
    int64_t bottom = std::numeric_limits<int64_t>::min(), right = bottom;
    top = left = std::numeric_limits<int64_t>::max();
    for (const Tap& tap : gather.taps) {
        const int64_t y = floor_quotient(tap.y, gather.step_y),
                      x = floor_quotient(tap.x, gather.step_x);
        top = std::min(top, y), bottom = std::max(bottom, y);
        left = std::min(left, x), right = std::max(right, x);
    }
    gather.pitch = gather.grid_w + right - left;
    for (const Tap& tap : gather.taps) {
        const int64_t y = floor_quotient(tap.y, gather.step_y),
                      x = floor_quotient(tap.x, gather.step_x);
        const Phase phase{tap.y - y * gather.step_y, tap.x - x * gather.step_x};
        const auto found = std::find_if(phases.begin(), phases.end(), [&](const Phase& other) {
            return other.y == phase.y && other.x == phase.x;
        });
        slot.push_back(found - phases.begin());
        if (found == phases.end()) phases.push_back(phase);
        shift.push_back((y - top) * gather.pitch + x - left);
        reach = std::max(reach, shift.back());
    }
}

PatchSource::Block& PatchSource::block() {
    static thread_local Block block;
    return block;
}

void PatchSource::prepare(int64_t batch, int64_t first, int64_t count, int64_t k_first,
                          int64_t depth) const {
    Block& b = block();
    const auto tap_count = static_cast<int64_t>(g_.taps.size()),
               phase_count = static_cast<int64_t>(layout_.phases.size());
    b.first_channel = k_first / tap_count;
    const int64_t channels = (k_first + depth - 1) / tap_count + 1 - b.first_channel;
    const int64_t per_image = g_.grid_h * g_.pitch, plane = g_.h * g_.w;
    b.segments.clear();
    int64_t size = 0;
    for (int64_t at = first; at < first + count;) {
        const int64_t image = at / per_image, from = at % per_image;
        const int64_t to = std::min(per_image, from + first + count - at);
        b.segments.push_back({image, from, to, size, to - from + layout_.reach});
        size += channels * phase_count * b.segments.back().length;
        at += to - from;
    }
    if (static_cast<int64_t>(b.values.size()) < size)
        b.values.resize(static_cast<std::size_t>(size));
    for (const Segment& segment : b.segments) {
        float* to = b.values.data() + segment.begin;
        const float* from =
            data_ + ((segment.image * g_.groups + batch) * g_.channels + b.first_channel) * plane;
        for (int64_t c = 0; c < channels; ++c, from += plane)
            for (const PatchLayout::Phase& phase : layout_.phases) {
                fill(segment, from, phase, to);
                to += segment.length;
            }
    }
}

// The part [segment.first, segment.first + segment.length) of a phase plane, row by row.
void PatchSource::fill(const Segment& segment, const float* plane, const PatchLayout::Phase& phase,
                       float* to) const {
    const int64_t end = segment.first + segment.length;
    for (int64_t at = segment.first; at < end;) {
        const int64_t row = at / g_.pitch, column = at % g_.pitch;
        const int64_t length = std::min(g_.pitch - column, end - at);
        const int64_t y = (row + layout_.top) * g_.step_y + phase.y;
        const int64_t x = (column + layout_.left) * g_.step_x + phase.x;
        const Inside in = y >= 0 && y < g_.h ? inside(x, g_.step_x, g_.w, static_cast<int>(length))
                                             : Inside{0, 0};
        std::fill(to, to + in.begin, 0.0f);
        if (in.begin < in.end)
            copy_apart(plane + y * g_.w + x + in.begin * g_.step_x, g_.step_x, in.end - in.begin,
                       to + in.begin);
        std::fill(to + in.end, to + length, 0.0f);
        to += length;
        at += length;
    }
}

void PatchSource::pack(int64_t, int64_t first, int count, int width, int64_t k_first, int64_t depth,
                       float* to) const {
    const Block& b = block();
    const auto tap_count = static_cast<int64_t>(g_.taps.size()),
               phase_count = static_cast<int64_t>(layout_.phases.size());
    const int64_t per_image = g_.grid_h * g_.pitch;
    const int64_t first_channel = k_first / tap_count - b.first_channel;
    int done = 0;
    for (const Segment& segment : b.segments) {
        const int64_t begin = std::max(first, segment.image * per_image + segment.first);
        const int64_t end = std::min(first + count, segment.image * per_image + segment.last);
        if (begin >= end) continue;
        const float* from =
            b.values.data() + segment.begin + begin - segment.image * per_image - segment.first;
        int64_t channel = first_channel, tap = k_first % tap_count;
        float* out = to + (begin - first);
        const auto length = static_cast<std::size_t>(end - begin);
        for (int64_t p = 0; p < depth; ++p, out += width) {
            const auto t = static_cast<std::size_t>(tap);
            const float* row = from + (channel * phase_count + layout_.slot[t]) * segment.length +
                               layout_.shift[t];
            if (length == host_gemm_max_columns)  // a copy of fixed size is faster
                std::memcpy(out, row, host_gemm_max_columns * sizeof(float));
            else
                std::copy_n(row, length, out);
            if (++tap == tap_count) {
                tap = 0;
                ++channel;
            }
        }
        done += static_cast<int>(length);
    }
    if (done < width)
        for (int64_t p = 0; p < depth; ++p)
            std::fill(to + p * width + count, to + (p + 1) * width, 0.0f);
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

void PlaneSink::store(const TileSums& tile) const {
    const int64_t plane = g_.plane_h * g_.plane_w;
    for_each_run(g_, tile.column, tile.columns, tile.columns, [&](const Run& run) {
        const int64_t position = place(run.y, run.x);
        for (int i = 0; i < tile.rows; ++i) {
            const int64_t channel = tile.batch * g_.results + tile.row + i;
            const float* from = tile.sums + i * tile.ld + run.at;
            float* to = result_ + (run.image * g_.groups * g_.results + channel) * plane + position;
            const float start = tile.first_block && bias_ ? bias_[channel] : 0.0f;
            if (g_.spread_x == 1) {
                if (tile.first_block)
                    for (int j = 0; j < run.length; ++j) to[j] = start + from[j];
                else
                    for (int j = 0; j < run.length; ++j) to[j] += from[j];
                continue;
            }
            for (int j = 0; j < run.length; ++j) {
                float& v = to[j * g_.spread_x];
                v = (tile.first_block ? start : v) + from[j];
            }
        }
    });
}

void PlaneSink::finish(int64_t batch, int64_t row, int64_t rows, int64_t column,
                       int64_t columns) const {
    if (epilogue_.empty()) return;
    const int64_t plane = g_.plane_h * g_.plane_w;
    const auto apply = [&](int64_t image, int64_t position, int64_t length) {
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t channel = batch * g_.results + row + i;
            const int64_t at = (image * g_.groups * g_.results + channel) * plane + position;
            if (g_.spread_x == 1) {
                epilogue_.apply(result_ + at, at, length);
                continue;
            }
            for (int64_t j = 0; j < length; ++j)
                epilogue_.apply(result_ + at + j * g_.spread_x, at + j * g_.spread_x, 1);
        }
    };
    // Where the grid is the whole plane, the elements of columns that follow each other do, too.
    if (g_.spread_x == 1 && g_.spread_y == 1 && g_.grid_w == g_.plane_w) {
        const int64_t per_image = g_.grid_h * g_.pitch;
        const auto element = [&](int64_t at) {
            return at / g_.pitch * g_.grid_w + std::min(at % g_.pitch, g_.grid_w);
        };
        for (int64_t at = column; at < column + columns;) {
            const int64_t from = at % per_image;
            const int64_t to = std::min(per_image, from + column + columns - at);
            apply(at / per_image, element(from), element(to) - element(from));
            at += to - from;
        }
        return;
    }
    for_each_run(g_, column, columns, columns,
                 [&](const Run& run) { apply(run.image, place(run.y, run.x), run.length); });
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
