// SPDX-License-Identifier: MIT
// pooling_nd.host, adaptive_pooling.host and those of their gradients: on the host's threads, which
// take planes, in all float types.
#include "engine/host_element.hpp"
#include "ops/pooling_nd/engines.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace dlprim::pooling_nd {

namespace {

/// The elements [begin, end) of a window that are in the input, in steps of `step`, and the number
/// by which this dimension divides a mean.
struct Range {
    std::int64_t begin, end, step, count;
};

Range range_of(const Windows& w, const Axis& a, std::int64_t o) {
    if (w.adaptive) {
        const std::int64_t begin = o * a.in / a.out, end = ((o + 1) * a.in + a.out - 1) / a.out;
        return {begin, end, 1, end - begin};
    }
    const std::int64_t from = o * a.stride - a.pad, to = from + (a.kernel - 1) * a.dilate + 1;
    const std::int64_t skipped = from < 0 ? (-from + a.dilate - 1) / a.dilate * a.dilate : 0;
    const std::int64_t begin = from + skipped, end = std::min(to, a.in);
    return {begin, end, a.dilate,
            w.count_include_pad ? std::min(to, a.in + a.pad_end) - from : end - begin};
}

/// The ranges of all outputs, for each dimension.
using Ranges = std::array<std::vector<Range>, 3>;

Ranges ranges_of(const Windows& w) {
    Ranges ranges;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::int64_t o = 0; o < w.axes[i].out; ++o)
            ranges[i].push_back(range_of(w, w.axes[i], o));
    return ranges;
}

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
                visit((i * windows.axes[1].in + j) * windows.axes[2].in + k);
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
void backward(const Windows& windows, const Ranges& ranges, const T* dy, const std::int64_t* index,
              std::vector<HostSumOf<T>>& sums, T* dx) {
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

class Host : public Base {
  public:
    Host(bool adaptive, bool is_backward) : Base("host", adaptive, is_backward) {}
    bool on_host() const override { return true; }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const bool indices =
            Base::backward() ? problem.inputs.size() > 1 : problem.outputs.size() > 1;
        return with_float_type(problem.inputs[0].dtype, [&]<typename T>(T) {
            return Base::backward() ? backward_launch<T>(windows(problem), indices)
                                    : forward_launch<T>(windows(problem), indices);
        });
    }

  private:
    using Operands = std::span<const BufferRef>;
    template <typename T>
    static T* at(Operands operands, std::size_t i) {
        return reinterpret_cast<T*>(operands[i].host());
    }

    template <typename T>
    static std::unique_ptr<Launch> forward_launch(const Windows& w, bool indices) {
        return std::make_unique<HostLaunch>(
            [w, indices, ranges = ranges_of(w)](HostPool& pool, Operands operands) {
                const T* x = at<const T>(operands, 0);
                T* y = at<T>(operands, 1);
                std::int64_t* index = indices ? at<std::int64_t>(operands, 2) : nullptr;
                const std::int64_t in = w.in_elements(), out = w.out_elements();
                pool.parallel_for(w.planes, 1, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t p = begin; p < end; ++p)
                        forward(w, ranges, x + p * in, y + p * out,
                                indices ? index + p * out : nullptr);
                });
            });
    }

    template <typename T>
    static std::unique_ptr<Launch> backward_launch(const Windows& w, bool indices) {
        return std::make_unique<HostLaunch>([w, indices, ranges = ranges_of(w)](HostPool& pool,
                                                                                Operands operands) {
            const T* dy = at<const T>(operands, 0);
            const std::int64_t* index = indices ? at<const std::int64_t>(operands, 1) : nullptr;
            T* dx = at<T>(operands, indices ? 2 : 1);
            const std::int64_t in = w.in_elements(), out = w.out_elements();
            pool.parallel_for(w.planes, 1, [&](std::int64_t begin, std::int64_t end) {
                std::vector<HostSumOf<T>> sums;
                for (std::int64_t p = begin; p < end; ++p)
                    pooling_nd::backward(w, ranges, dy + p * out,
                                         indices ? index + p * out : nullptr, sums, dx + p * in);
            });
        });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    for (const bool adaptive : {false, true})
        for (const bool is_backward : {false, true})
            engines.add(std::make_unique<Host>(adaptive, is_backward));
}

}  // namespace dlprim::pooling_nd
