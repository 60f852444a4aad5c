// SPDX-License-Identifier: MIT
// resize.host and resize_backward.host: on the host's threads, which take planes, in all float
// types.
#include "engine/host_element.hpp"
#include "ops/resize/engines.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::resize {

namespace {

using Axes = std::array<Axis, 3>;

/// Calls visit(output, input, weight) for all pairs of a plane, outputs in their order.
template <typename Visit>
void each_pair(const Axes& axes, Visit&& visit) {
    const auto& [d, h, w] = axes;
    const auto each_tap = [](const Axis& axis, std::int64_t o, auto&& use) {
        const auto at = static_cast<std::size_t>(o);
        for (std::int64_t t = 0; t < axis.count[at]; ++t)
            use(axis.start[at] + t, axis.weight[static_cast<std::size_t>(o * axis.taps + t)]);
    };
    for (std::int64_t z = 0; z < d.out; ++z)
        for (std::int64_t y = 0; y < h.out; ++y)
            for (std::int64_t x = 0; x < w.out; ++x)
                each_tap(d, z, [&](std::int64_t i, double wi) {
                    each_tap(h, y, [&](std::int64_t j, double wj) {
                        each_tap(w, x, [&](std::int64_t k, double wk) {
                            visit((z * h.out + y) * w.out + x, (i * h.in + j) * w.in + k,
                                  wi * wj * wk);
                        });
                    });
                });
}

/// Whether each output of an axis is one input.
bool is_choice(const Axis& axis) {
    return axis.taps == 1 && std::all_of(axis.weight.begin(), axis.weight.end(),
                                         [](double weight) { return weight == 1; });
}

/// Each output is one input, as by the nearest neighbour. Rows that repeat are copied.
template <typename T>
void choose(const Axes& axes, const T* from, T* to) {
    const auto& [d, h, w] = axes;
    const T* last = nullptr;
    for (std::int64_t z = 0; z < d.out; ++z)
        for (std::int64_t y = 0; y < h.out; ++y, to += w.out) {
            const T* row = from + (d.start[static_cast<std::size_t>(z)] * h.in +
                                   h.start[static_cast<std::size_t>(y)]) *
                                      w.in;
            if (row == last)
                std::copy_n(to - w.out, w.out, to);
            else
                for (std::int64_t x = 0; x < w.out; ++x)
                    to[x] = row[w.start[static_cast<std::size_t>(x)]];
            last = row;
        }
}

/// `sums` is scratch, in which elements add up before they are rounded.
template <typename T, bool is_backward>
void plane(const Axes& axes, const T* from, std::vector<HostSumOf<T>>& sums, T* to) {
    using Sum = HostSumOf<T>;
    std::fill(sums.begin(), sums.end(), Sum{0});
    each_pair(axes, [&](std::int64_t output, std::int64_t input, double weight) {
        const std::int64_t at = is_backward ? input : output, read = is_backward ? output : input;
        sums[static_cast<std::size_t>(at)] +=
            static_cast<Sum>(weight) * static_cast<Sum>(from[read]);
    });
    std::transform(sums.begin(), sums.end(), to, [](Sum sum) { return T(sum); });
}

class Host : public Base {
  public:
    explicit Host(bool is_backward) : Base("host", is_backward) {}
    bool on_host() const override { return true; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Shape& shape = problem.inputs[0].shape;
        return with_float_type(problem.inputs[0].dtype, [&]<typename T>(T) {
            return backward() ? launch<T, true>(axes(problem), shape[0] * shape[1])
                              : launch<T, false>(axes(problem), shape[0] * shape[1]);
        });
    }

  private:
    template <typename T, bool is_backward>
    static std::unique_ptr<Launch> launch(Axes axes, std::int64_t planes) {
        const std::int64_t in = axes[0].in * axes[1].in * axes[2].in,
                           out = axes[0].out * axes[1].out * axes[2].out;
        const std::int64_t read = is_backward ? out : in, made = is_backward ? in : out;
        return std::make_unique<HostLaunch>(
            [=, axes = std::move(axes)](HostPool& pool, std::span<const BufferRef> operands) {
                const T* from = reinterpret_cast<const T*>(operands[0].host());
                T* to = reinterpret_cast<T*>(operands[1].host());
                if (!is_backward && std::all_of(axes.begin(), axes.end(), is_choice))
                    return pool.parallel_for(planes, 1, [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t p = begin; p < end; ++p)
                            choose(axes, from + p * read, to + p * made);
                    });
                pool.parallel_for(planes, 1, [&](std::int64_t begin, std::int64_t end) {
                    std::vector<HostSumOf<T>> sums(static_cast<std::size_t>(made));
                    for (std::int64_t p = begin; p < end; ++p)
                        plane<T, is_backward>(axes, from + p * read, sums, to + p * made);
                });
            });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>(false));
    engines.add(std::make_unique<Host>(true));
}

}  // namespace dlprim::resize
