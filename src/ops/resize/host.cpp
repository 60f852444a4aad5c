// SPDX-License-Identifier: MIT
// resize.host and resize_backward.host: on the host's threads, which take rows of the result, in
// all float types.
#include "engine/host_element.hpp"
#include "ops/resize/engines.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace dlprim::resize {

namespace {

using Axes = std::array<Axis, 3>;

std::size_t at(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Whether each output of an axis is one input, as by the nearest neighbour.
bool is_choice(const Axis& axis) {
    return axis.fixed_taps() == 1;
}

/// Calls use(number) for each tap of an axis's output.
template <typename Use>
void each_tap(const Axis& axis, std::int64_t o, Use&& use) {
    for (std::int64_t t = 0; t < axis.count[at(o)]; ++t) use(at(o * axis.taps + t));
}

/// Calls use(row, weight) for each of the input's rows that a row of the result mixes. Rows count
/// over all images of `outer`, depths and heights.
template <typename Use>
void each_row(const Axes& axes, std::int64_t row, Use&& use) {
    const auto& [d, h, w] = axes;
    const std::int64_t image = row / h.out / d.out;
    each_tap(d, row / h.out % d.out, [&](std::size_t i) {
        each_tap(h, row % h.out, [&](std::size_t j) {
            use((image * d.in + d.position[i]) * h.in + h.position[j], d.weight[i] * h.weight[j]);
        });
    });
}

/// Each output is one input. Rows that repeat are copied.
template <typename T>
void choose(const Axes& axes, std::int64_t begin, std::int64_t end, std::int64_t inner,
            const T* from, T* to) {
    const Axis& w = axes[2];
    const T* last = nullptr;
    to += begin * w.out * inner;
    for (std::int64_t row = begin; row < end; ++row, to += w.out * inner) {
        const T* line = nullptr;
        each_row(axes, row, [&](std::int64_t read, double) { line = from + read * w.in * inner; });
        if (line == last)
            std::copy_n(to - w.out * inner, w.out * inner, to);
        else if (inner == 1)
            for (std::size_t o = 0; o < w.position.size(); ++o) to[o] = line[w.position[o]];
        else
            for (std::int64_t o = 0; o < w.out; ++o)
                std::copy_n(line + w.position[at(o)] * inner, inner, to + o * inner);
        last = line;
    }
}

/// Adds `factor` times the outputs of a row's width to `sums`. Each mixes `taps` inputs, or if that
/// is 0 count[o].
template <int taps, typename T, typename Sum>
void add_row(const Axis& w, const std::vector<Sum>& weights, const T* line, Sum factor,
             std::int64_t inner, Sum* sums) {
    for (std::int64_t o = 0; o < w.out; ++o, sums += inner) {
        const std::int32_t* position = w.position.data() + o * w.taps;
        const Sum* weight = weights.data() + o * w.taps;
        if constexpr (taps > 0) {
            for (std::int64_t lane = 0; lane < inner; ++lane) {
                Sum mix = 0;
                for (int t = 0; t < taps; ++t)
                    mix += weight[t] * static_cast<Sum>(line[position[t] * inner + lane]);
                sums[lane] += factor * mix;
            }
        } else if (inner == 1) {
            Sum sum = sums[0];
            for (std::int64_t t = 0; t < w.count[at(o)]; ++t)
                sum += factor * weight[t] * static_cast<Sum>(line[position[t]]);
            sums[0] = sum;
        } else {
            for (std::int64_t t = 0; t < w.count[at(o)]; ++t) {
                const T* from = line + position[t] * inner;
                const Sum share = factor * weight[t];
                for (std::int64_t lane = 0; lane < inner; ++lane)
                    sums[lane] += share * static_cast<Sum>(from[lane]);
            }
        }
    }
}

/// Two rows of which each output mixes two inputs, as of linear images: in one pass.
template <typename T, typename Sum>
void mix_four(const Axis& w, const std::vector<Sum>& weights, const std::array<const T*, 2>& lines,
              const std::array<Sum, 2>& factors, std::int64_t inner, Sum* sums) {
    for (std::size_t o = 0; o < weights.size(); o += 2, sums += inner) {
        const T *a0 = lines[0] + w.position[o] * inner, *b0 = lines[0] + w.position[o + 1] * inner,
                *a1 = lines[1] + w.position[o] * inner, *b1 = lines[1] + w.position[o + 1] * inner;
        const Sum a = weights[o], b = weights[o + 1], top = factors[0], bottom = factors[1];
        for (std::int64_t l = 0; l < inner; ++l)
            sums[l] = top * (a * static_cast<Sum>(a0[l]) + b * static_cast<Sum>(b0[l])) +
                      bottom * (a * static_cast<Sum>(a1[l]) + b * static_cast<Sum>(b1[l]));
    }
}

/// Rows [begin, end) of the result.
template <typename T>
void mix_rows(const Axes& axes, const std::vector<HostSumOf<T>>& weights, std::int64_t begin,
              std::int64_t end, std::int64_t inner, const T* from, T* to) {
    using Sum = HostSumOf<T>;
    const Axis& w = axes[2];
    const int taps = w.fixed_taps();
    const auto add = taps == 2   ? add_row<2, T, Sum>
                     : taps == 4 ? add_row<4, T, Sum>
                                 : add_row<0, T, Sum>;
    std::vector<Sum> scratch(std::is_same_v<T, Sum> ? 0 : at(w.out * inner));
    for (std::int64_t row = begin; row < end; ++row) {
        T* const made = to + row * w.out * inner;
        Sum* sums = scratch.data();
        if constexpr (std::is_same_v<T, Sum>) sums = made;
        std::size_t count = 0;
        std::array<const T*, 2> lines{};
        std::array<Sum, 2> factors{};
        each_row(axes, row, [&](std::int64_t read, double weight) {
            if (weight == 0 || count++ >= 2) return;
            lines[count - 1] = from + read * w.in * inner;
            factors[count - 1] = static_cast<Sum>(weight);
        });
        if (count == 2 && taps == 2) {
            mix_four(w, weights, lines, factors, inner, sums);
        } else {
            std::fill_n(sums, w.out * inner, Sum{0});
            each_row(axes, row, [&](std::int64_t read, double weight) {
                if (weight != 0)
                    add(w, weights, from + read * w.in * inner, static_cast<Sum>(weight), inner,
                        sums);
            });
        }
        if constexpr (!std::is_same_v<T, Sum>)
            std::transform(sums, sums + w.out * inner, made, [](Sum sum) { return T(sum); });
    }
}

class Host : public Base {
  public:
    explicit Host(bool is_backward) : Base(is_backward, true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return with_float_type(problem.inputs[0].dtype, [&]<typename T>(T) {
            return launch<T>(axes(problem), View(problem.inputs[0]));
        });
    }

  private:
    template <typename T>
    static std::unique_ptr<Launch> launch(Axes axes, const View& view) {
        const bool chooses = std::all_of(axes.begin(), axes.end(), is_choice);
        std::vector<HostSumOf<T>> weights(axes[2].weight.begin(), axes[2].weight.end());
        return std::make_unique<HostLaunch>(
            [=, axes = std::move(axes), weights = std::move(weights)](
                HostPool& pool, std::span<const BufferRef> operands) {
                const T* from = reinterpret_cast<const T*>(operands[0].host());
                T* to = reinterpret_cast<T*>(operands[1].host());
                pool.parallel_for(view.outer * axes[0].out * axes[1].out, 1,
                                  [&](std::int64_t begin, std::int64_t end) {
                                      if (chooses)
                                          choose(axes, begin, end, view.inner, from, to);
                                      else
                                          mix_rows(axes, weights, begin, end, view.inner, from, to);
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
