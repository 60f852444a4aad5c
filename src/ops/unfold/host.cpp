// SPDX-License-Identifier: MIT
// unfold.host and fold.host: rows of columns, and planes of images, on the host's threads.
#include "ops/unfold/windows.hpp"

#include <algorithm>

namespace dlprim::unfold {

namespace {

/// Calls visit(pixel, window) for the pixels of a plane that element [ky, kx] of its windows has,
/// in the order of windows.
template <typename Visit>
void each_pixel(const Windows& windows, std::int64_t ky, std::int64_t kx, Visit&& visit) {
    const auto& [down, across] = windows.axes;
    for (std::int64_t i = 0; i < down.windows; ++i) {
        const std::int64_t y = i * down.stride - down.pad + ky * down.dilate;
        if (y < 0 || y >= down.size) continue;
        for (std::int64_t j = 0; j < across.windows; ++j) {
            const std::int64_t x = j * across.stride - across.pad + kx * across.dilate;
            if (x >= 0 && x < across.size) visit(y * across.size + x, i * across.windows + j);
        }
    }
}

/// A task is a row of the columns: element [ky, kx] of all windows of a plane.
template <typename T>
void unfold(HostPool& pool, const Windows& windows, const T* images, T* columns) {
    const std::int64_t taps = windows.taps(), count = windows.windows();
    const std::int64_t width = windows.axes[1].kernel;
    pool.parallel_for(windows.planes() * taps, 1 + 16384 / std::max<std::int64_t>(count, 1),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t row = begin; row < end; ++row) {
                              const std::int64_t tap = row % taps;
                              const T* from = images + row / taps * windows.pixels();
                              T* to = columns + row * count;
                              std::fill_n(to, count, T(0));
                              each_pixel(windows, tap / width, tap % width,
                                         [&](std::int64_t pixel, std::int64_t window) {
                                             to[window] = from[pixel];
                                         });
                          }
                      });
}

/// A task is a plane, to which the rows of its columns are added in their order.
template <typename T>
void fold(HostPool& pool, const Windows& windows, const T* columns, T* images) {
    const std::int64_t taps = windows.taps(), count = windows.windows();
    const std::int64_t width = windows.axes[1].kernel;
    pool.parallel_for(windows.planes(), 1 + 16384 / std::max<std::int64_t>(taps * count, 1),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t plane = begin; plane < end; ++plane) {
                              T* to = images + plane * windows.pixels();
                              std::fill_n(to, windows.pixels(), T(0));
                              for (std::int64_t tap = 0; tap < taps; ++tap) {
                                  const T* from = columns + (plane * taps + tap) * count;
                                  each_pixel(windows, tap / width, tap % width,
                                             [&](std::int64_t pixel, std::int64_t window) {
                                                 to[pixel] += from[window];
                                             });
                              }
                          }
                      });
}

class Host : public Base {
  public:
    explicit Host(std::string_view op) : Base(op, true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.inputs[0].dtype == DType::f64) return launch<double>(problem);
        return launch<float>(problem);
    }

  private:
    template <typename T>
    std::unique_ptr<Launch> launch(const Problem& problem) const {
        return std::make_unique<HostLaunch>(
            [windows = windows(problem), folds = folds()](HostPool& pool,
                                                          std::span<const BufferRef> operands) {
                const T* from = reinterpret_cast<const T*>(operands[0].host());
                T* to = reinterpret_cast<T*>(operands[1].host());
                if (folds)
                    fold(pool, windows, from, to);
                else
                    unfold(pool, windows, from, to);
            });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    for (const std::string_view op : {unfold_type, fold_type})
        engines.add(std::make_unique<Host>(op));
}

}  // namespace dlprim::unfold
