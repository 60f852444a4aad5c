// SPDX-License-Identifier: MIT
// grid_sample.host and those of its gradients, on the host's threads: planes of images, or places.
#include "engine/host_element.hpp"
#include "ops/grid_sample/engines.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::grid_sample {

namespace {

/// The pixels that a place mixes along one dimension: their positions (-1: a zero), their weights,
/// and the weights' derivatives by the place's coordinate.
template <typename T>
struct Taps {
    int count = 1;
    std::int64_t at[4];
    T weight[4], slope[4];
};

/// A coordinate in pixels and its derivative by the place's coordinate.
template <typename T>
struct Position {
    T value, slope;
};

template <typename T>
Position<T> clipped(Position<T> p, std::int64_t size) {
    const T last = static_cast<T>(size - 1);
    if (!(p.value > 0)) return {0, 0};
    if (p.value >= last) return {last, 0};
    return p;
}

template <typename T>
Position<T> reflected(Position<T> p, std::int64_t size, bool align_corners) {
    const T low = align_corners ? T(0) : T(-0.5);
    const T span = static_cast<T>(align_corners ? size - 1 : size);
    if (span == 0) return {0, 0};
    T away = p.value - low;
    if (away < 0) {
        away = -away;
        p.slope = -p.slope;
    }
    const T rest = std::fmod(away, span), flips = std::floor(away / span);
    if (std::fmod(flips, T(2)) == 0) return {rest + low, p.slope};
    return {span - rest + low, -p.slope};
}

template <typename T>
Position<T> padded(const Options& o, Position<T> p, std::int64_t size) {
    if (o.padding == Padding::reflection) p = reflected(p, size, o.align_corners);
    return o.padding == Padding::zeros ? p : clipped(p, size);
}

template <typename T>
Taps<T> taps_of(const Options& o, T coordinate, std::int64_t size) {
    const T half = T(0.5);
    const T edge = static_cast<T>(size);
    Position<T> p = o.align_corners
                        ? Position<T>{(coordinate + 1) * half * (edge - 1), half * (edge - 1)}
                        : Position<T>{((coordinate + 1) * edge - 1) * half, half * edge};
    if (o.mode != Mode::bicubic) p = padded(o, p, size);
    // What is not a number, or too far away for an integer, is outside.
    if (!(std::abs(p.value) < T(1 << 30))) p = {T(-100), 0};
    Taps<T> taps;
    const T floor = o.mode == Mode::nearest ? std::nearbyint(p.value) : std::floor(p.value);
    const T part = p.value - floor;
    std::int64_t first = static_cast<std::int64_t>(floor);
    if (o.mode == Mode::nearest) {
        taps.weight[0] = 1;
        taps.slope[0] = 0;
    } else if (o.mode == Mode::bilinear) {
        taps.count = 2;
        taps.weight[0] = 1 - part;
        taps.weight[1] = part;
        taps.slope[0] = -p.slope;
        taps.slope[1] = p.slope;
    } else {
        taps.count = 4;
        --first;
        const T a = T(-0.75);
        for (int i = 0; i < 4; ++i) {
            const T offset = part + 1 - static_cast<T>(i), d = std::abs(offset);
            const T sign = offset < 0 ? T(-1) : T(1);
            taps.weight[i] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                                    : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
            taps.slope[i] =
                p.slope * sign *
                (d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
        }
    }
    for (int i = 0; i < taps.count; ++i) {
        std::int64_t at = first + i;
        if (o.mode == Mode::bicubic)
            at = static_cast<std::int64_t>(
                padded(o, Position<T>{static_cast<T>(at), 1}, size).value);
        taps.at[i] = at >= 0 && at < size ? at : -1;
    }
    return taps;
}

/// Calls visit(pixel, weight, its derivatives by x and y) for the pixels that place `at` mixes.
template <typename T, typename Visit>
void each_pixel(const Options& o, const Sizes& s, const T* grid, std::int64_t at, Visit&& visit) {
    const Taps<T> x = taps_of(o, grid[2 * at], s.w), y = taps_of(o, grid[2 * at + 1], s.h);
    for (int i = 0; i < y.count; ++i)
        for (int j = 0; j < x.count; ++j)
            if (y.at[i] >= 0 && x.at[j] >= 0)
                visit(y.at[i] * s.w + x.at[j], y.weight[i] * x.weight[j], y.weight[i] * x.slope[j],
                      y.slope[i] * x.weight[j]);
}

template <typename T>
class Work {
  public:
    Work(const Options& options, const Sizes& sizes)
        : o_(options), s_(sizes), area_(s_.h * s_.w), places_(s_.oh * s_.ow) {}

    void forward(HostPool& pool, const T* x, const T* grid, T* y) const {
        each(pool, s_.n * s_.c, [&](std::int64_t plane) {
            const T *from = x + plane * area_, *g = grid + plane / s_.c * places_ * 2;
            for (std::int64_t at = 0; at < places_; ++at) {
                T sum = 0;
                each_pixel(o_, s_, g, at, [&](std::int64_t pixel, T weight, T, T) {
                    sum += weight * from[pixel];
                });
                y[plane * places_ + at] = sum;
            }
        });
    }
    void data(HostPool& pool, const T* dy, const T* grid, T* dx) const {
        each(pool, s_.n * s_.c, [&](std::int64_t plane) {
            const T *from = dy + plane * places_, *g = grid + plane / s_.c * places_ * 2;
            T* to = dx + plane * area_;
            std::fill_n(to, area_, T(0));
            for (std::int64_t at = 0; at < places_; ++at)
                each_pixel(o_, s_, g, at, [&](std::int64_t pixel, T weight, T, T) {
                    to[pixel] += weight * from[at];
                });
        });
    }
    void places(HostPool& pool, const T* dy, const T* x, const T* grid, T* dgrid) const {
        each(pool, s_.n * places_, [&](std::int64_t place) {
            const std::int64_t n = place / places_, at = place % places_;
            T by_x = 0, by_y = 0;
            each_pixel(o_, s_, grid + n * places_ * 2, at,
                       [&](std::int64_t pixel, T, T slope_x, T slope_y) {
                           T sum = 0;
                           for (std::int64_t c = n * s_.c; c < (n + 1) * s_.c; ++c)
                               sum += x[c * area_ + pixel] * dy[c * places_ + at];
                           by_x += slope_x * sum;
                           by_y += slope_y * sum;
                       });
            dgrid[2 * place] = by_x;
            dgrid[2 * place + 1] = by_y;
        });
    }

  private:
    template <typename Task>
    static void each(HostPool& pool, std::int64_t count, Task&& task) {
        pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) task(i);
        });
    }

    Options o_;
    Sizes s_;
    std::int64_t area_, places_;
};

class Host : public Base {
  public:
    explicit Host(Part part) : Base(part, true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.inputs[0].dtype == DType::f64) return launch<double>(problem);
        return launch<float>(problem);
    }

  private:
    template <typename T>
    std::unique_ptr<Launch> launch(const Problem& problem) const {
        const Work<T> work(Options(problem.attrs), sizes(problem));
        return std::make_unique<HostLaunch>(
            [work, part = part()](HostPool& pool, std::span<const BufferRef> operands) {
                const auto at = [&](std::size_t i) {
                    return reinterpret_cast<T*>(operands[i].host());
                };
                if (part == Part::forward)
                    work.forward(pool, at(0), at(1), at(2));
                else if (part == Part::data)
                    work.data(pool, at(0), at(1), at(2));
                else
                    work.places(pool, at(0), at(1), at(2), at(3));
            });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    for (const auto part : {Base::Part::forward, Base::Part::data, Base::Part::grid})
        engines.add(std::make_unique<Host>(part));
}

}  // namespace dlprim::grid_sample
