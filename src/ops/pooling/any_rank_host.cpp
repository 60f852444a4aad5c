// SPDX-License-Identifier: MIT
// pooling_nd.host and pooling_nd_backward.host: on the host's threads, which take planes, in all
// float types.
#include "engine/host_element.hpp"
#include "ops/pooling/engines.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace dlprim::pooling {

namespace {

/// Calls visit(index of the output in its plane, its ranges) for all outputs of a plane.
template <typename Visit>
void each_output(const Ranges& ranges, Visit&& visit) {
    std::int64_t at = 0;
    for (const Range& d : ranges[0])
        for (const Range& h : ranges[1])
            for (const Range& w : ranges[2]) visit(at++, d, h, w);
}

/// Calls visit(index in the plane of the input) for each element of a window.
template <typename Visit>
void each_element(const Windows& windows, const Range& d, const Range& h, const Range& w,
                  Visit&& visit) {
    for (std::int64_t i = d.begin; i < d.end; i += d.step)
        for (std::int64_t j = h.begin; j < h.end; j += h.step)
            for (std::int64_t k = w.begin; k < w.end; k += w.step)
                visit((i * windows.h().in + j) * windows.w().in + k);
}

std::int64_t divisor_of(const Windows& windows, const Range& d, const Range& h, const Range& w) {
    return windows.divisor > 0 ? windows.divisor : d.count * h.count * w.count;
}

template <typename T>
void forward(const Windows& windows, const Ranges& ranges, const T* x, T* y, std::int64_t* index) {
    using Sum = HostSumOf<T>;
    each_output(ranges, [&](std::int64_t at, const Range& d, const Range& h, const Range& w) {
        if (windows.average) {
            Sum sum = 0;
            each_element(windows, d, h, w, [&](std::int64_t i) { sum += static_cast<Sum>(x[i]); });
            y[at] = T(sum / static_cast<Sum>(divisor_of(windows, d, h, w)));
            return;
        }
        Sum best = -std::numeric_limits<Sum>::infinity();
        std::int64_t position = -1;
        each_element(windows, d, h, w, [&](std::int64_t i) {
            const Sum v = static_cast<Sum>(x[i]);
            if (v > best || v != v || position < 0) {
                best = v;
                position = i;
            }
        });
        y[at] = T(best);
        if (index != nullptr) index[at] = position;
    });
}

/// `sums` is scratch, in which gradients of overlapping windows add up before they are rounded.
template <typename T>
void backward_of(const Windows& windows, const Ranges& ranges, const T* dy,
                 const std::int64_t* index, std::vector<HostSumOf<T>>& sums, T* dx) {
    using Sum = HostSumOf<T>;
    sums.assign(static_cast<std::size_t>(windows.in_elements()), 0);
    const auto size = windows.in_elements();
    each_output(ranges, [&](std::int64_t at, const Range& d, const Range& h, const Range& w) {
        const Sum g = static_cast<Sum>(dy[at]);
        if (windows.average) {
            const Sum share = g / static_cast<Sum>(divisor_of(windows, d, h, w));
            each_element(windows, d, h, w,
                         [&](std::int64_t i) { sums[static_cast<std::size_t>(i)] += share; });
        } else if (index[at] >= 0 && index[at] < size) {
            sums[static_cast<std::size_t>(index[at])] += g;
        }
    });
    std::transform(sums.begin(), sums.end(), dx, [](Sum sum) { return T(sum); });
}

class AnyRankHost : public AnyRankEngine {
  public:
    explicit AnyRankHost(bool backward)
        : AnyRankEngine(backward ? "pooling_nd_backward.host" : "pooling_nd.host", backward, true) {
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return with_float_type(problem.inputs[0].dtype, [&]<typename T>(T) {
            return launch_of<T>(Windows(problem), has_positions(problem), backward());
        });
    }

  private:
    template <typename T>
    static std::unique_ptr<Launch> launch_of(const Windows& w, bool positions, bool backward) {
        return std::make_unique<HostLaunch>(
            [w, positions, backward, ranges = ranges_of(w)](HostPool& pool,
                                                            std::span<const BufferRef> operands) {
                const auto at = [&]<typename Value>(std::size_t i, Value*) {
                    return reinterpret_cast<Value*>(operands[i].host());
                };
                const std::int64_t in = w.in_elements(), out = w.out_elements();
                // Operands are x, y, positions, or dy, positions, dx.
                const T* from = at(0, static_cast<const T*>(nullptr));
                T* to = at(backward ? operands.size() - 1 : 1, static_cast<T*>(nullptr));
                std::int64_t* index =
                    positions ? at(backward ? 1 : 2, static_cast<std::int64_t*>(nullptr)) : nullptr;
                pool.parallel_for(w.planes, 1, [&](std::int64_t begin, std::int64_t end) {
                    std::vector<HostSumOf<T>> sums;
                    for (std::int64_t p = begin; p < end; ++p) {
                        std::int64_t* of_plane = positions ? index + p * out : nullptr;
                        if (backward)
                            backward_of(w, ranges, from + p * out, of_plane, sums, to + p * in);
                        else
                            forward(w, ranges, from + p * in, to + p * out, of_plane);
                    }
                });
            });
    }
};

}  // namespace

void add_any_rank_host_engines(EngineRegistry& engines) {
    for (const bool backward : {false, true}) engines.add(std::make_unique<AnyRankHost>(backward));
}

}  // namespace dlprim::pooling
