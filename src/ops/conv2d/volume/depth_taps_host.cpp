// SPDX-License-Identifier: MIT
// depth_taps.host and depth_taps_backward.host: on the host's threads, which take planes.
#include "engine/host_element.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/volume/depth_taps.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::conv2d {

namespace {

/// Plane `index` of y, counted over [N, D', C, K].
template <typename T>
void take(const DepthTaps& t, std::int64_t index, const T* x, T* y) {
    const std::int64_t k = index % t.kernel, c = index / t.kernel % t.channels;
    const std::int64_t o = index / t.kernel / t.channels % t.out;
    const std::int64_t n = index / t.kernel / t.channels / t.out;
    const std::int64_t from = o * t.stride - t.pad + k * t.dilate;
    T* to = y + index * t.plane;
    if (from < 0 || from >= t.depth)
        std::fill_n(to, t.plane, T(0));
    else
        std::copy_n(x + ((n * t.channels + c) * t.depth + from) * t.plane, t.plane, to);
}

/// Plane `index` of x, counted over [N, C, D].
template <typename T>
void sum(const DepthTaps& t, std::int64_t index, const T* y, std::vector<HostSumOf<T>>& sums,
         T* x) {
    const std::int64_t at = index % t.depth, c = index / t.depth % t.channels;
    const std::int64_t n = index / t.depth / t.channels;
    sums.assign(static_cast<std::size_t>(t.plane), 0);
    for (std::int64_t k = 0; k < t.kernel; ++k) {
        const std::int64_t shifted = at + t.pad - k * t.dilate;
        if (shifted < 0 || shifted % t.stride != 0 || shifted / t.stride >= t.out) continue;
        const T* from =
            y + (((n * t.out + shifted / t.stride) * t.channels + c) * t.kernel + k) * t.plane;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<HostSumOf<T>>(from[i]);
    }
    std::transform(sums.begin(), sums.end(), x + index * t.plane,
                   [](HostSumOf<T> value) { return T(value); });
}

class Host : public DepthTapsEngine {
  public:
    explicit Host(bool is_backward) : DepthTapsEngine(is_backward, true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const DepthTaps taps(problem);
        return with_float_type(problem.inputs[0].dtype, [&]<typename T>(T) {
            return backward() ? launch<T, true>(taps) : launch<T, false>(taps);
        });
    }

  private:
    template <typename T, bool is_backward>
    static std::unique_ptr<Launch> launch(const DepthTaps& t) {
        return std::make_unique<HostLaunch>(
            [t](HostPool& pool, std::span<const BufferRef> operands) {
                const T* from = reinterpret_cast<const T*>(operands[0].host());
                T* to = reinterpret_cast<T*>(operands[1].host());
                const std::int64_t planes =
                    t.batch * t.channels * (is_backward ? t.depth : t.out * t.kernel);
                pool.parallel_for(planes, 1, [&](std::int64_t begin, std::int64_t end) {
                    std::vector<HostSumOf<T>> sums;
                    for (std::int64_t i = begin; i < end; ++i) {
                        if constexpr (is_backward)
                            sum(t, i, from, sums, to);
                        else
                            take(t, i, from, to);
                    }
                });
            });
    }
};

}  // namespace

void add_depth_taps_host_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>(false));
    engines.add(std::make_unique<Host>(true));
}

}  // namespace dlprim::conv2d
