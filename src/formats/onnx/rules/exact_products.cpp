// SPDX-License-Identifier: MIT
// Exact products of small integers; see exact_products.hpp.
#include "formats/onnx/rules/exact_products.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

constexpr std::int64_t largest_factor = 255, largest_sum = 1 << 24;
constexpr std::int64_t most_products = largest_sum / (largest_factor * largest_factor);

/// Where the summed dimension is cut: [0, ..., its size].
struct Cuts {
    Ints at{0};

    explicit Cuts(Ints settled) : at(std::move(settled)) {}

    /// Of computed factors: each of `count` indices has `elements` products, at most most_products.
    Cuts(std::int64_t count, std::int64_t elements) {
        const std::int64_t most = most_products / elements;
        for (std::int64_t i = most; i < count; i += most) at.push_back(i);
        at.push_back(count);
    }

    /// Of factors [results, count, elements] whose magnitudes are known.
    Cuts(std::int64_t results, std::int64_t count, std::int64_t elements, const Ints& values) {
        Ints sums(static_cast<std::size_t>(results), 0), parts = sums;
        for (std::int64_t i = 0; i < count; ++i) {
            std::int64_t top = 0;
            for (std::int64_t r = 0; r < results; ++r) {
                std::int64_t own = 0;
                for (std::int64_t e = 0; e < elements; ++e)
                    own += values[static_cast<std::size_t>((r * count + i) * elements + e)];
                const auto at_r = static_cast<std::size_t>(r);
                parts[at_r] = own;
                top = std::max(top, sums[at_r] + own);
            }
            const bool full = top > largest_sum / largest_factor && i > at.back();
            if (full) at.push_back(i);
            for (std::size_t r = 0; r < sums.size(); ++r) sums[r] = (full ? 0 : sums[r]) + parts[r];
        }
        at.push_back(count);
    }

    std::size_t parts() const { return at.size() - 1; }
};

/// Adds the parts' float results as integers.
class IntegerSum {
  public:
    explicit IntegerSum(Builder& build) : build_(build) {}
    void add(Ref part) {
        const Ref whole = build_.cast(part, DType::i32);
        sum_ = sum_ ? build_.pointwise("y0 = x0 + x1", {sum_, whole}, DType::i32) : whole;
    }
    Ref sum() const { return sum_; }

  private:
    Builder& build_;
    Ref sum_ = nullptr;
};

/// [k, n] as [n, k].
Ints turned(const Ints& values, std::int64_t k, std::int64_t n) {
    Ints result;
    for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < k; ++i)
            result.push_back(values[static_cast<std::size_t>(i * n + j)]);
    return result;
}

/// Winograd's algorithm, which engines use for 3x3 windows of neighbours, is not exact. A column of
/// zeros makes them 3x4.
void widen(Builder& build, const Windows& windows, Ref& weights, Ints& kernel, Ints& pad) {
    const auto is = [](const Ints& sizes, std::int64_t size) {
        return std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t s) { return s == size; });
    };
    if (!is(windows.kernel, 3) || !is(windows.stride, 1) || !is(windows.dilation, 1)) return;
    weights = build.add1("Pad", {weights}, {{"pads", Ints{0, 1}}, {"mode", "constant"}});
    kernel = {3, 4};
    pad[3] += 1;
}

/// The axis of a second factor's rows, from the end.
int row_axis(const Shape& matrix) {
    return matrix.rank() == 1 ? -1 : -2;
}

Cuts matrix_cuts(const Factor& b) {
    if (!b.cuts.empty()) return Cuts(b.cuts);
    const Shape& matrix = b.value->spec.shape;
    const std::int64_t k = matrix[row_axis(matrix)];
    if (b.known.empty() || matrix.rank() != 2) return {k, 1};
    return {matrix[1], k, 1, turned(b.known, k, matrix[1])};
}

Ref product_of(Builder& build, const Factor& a, const Factor& b, DType dtype) {
    const int row = row_axis(b.value->spec.shape);
    const Cuts cuts = matrix_cuts(b);
    const auto part = [&](std::size_t i) {
        const std::int64_t begin = cuts.at[i], end = cuts.at[i + 1];
        return build.add1("MatMul", {build.slice(a.value, -1, begin, end),
                                     build.slice(b.value, row, begin, end)});
    };
    if (cuts.parts() == 1) return build.cast(part(0), dtype);
    IntegerSum sum(build);
    for (std::size_t i = 0; i < cuts.parts(); ++i) sum.add(part(i));
    return build.cast(sum.sum(), dtype);
}

}  // namespace

Factor shifted(Call& call, Ref x, Ref zero_point) {
    const DType dtype = x->spec.dtype;
    call.check(dtype == DType::u8 || dtype == DType::i8, "a factor is ", name_of(dtype),
               "; it must be uint8 or int8");
    if (zero_point)
        call.check(zero_point->spec.dtype == dtype, "a zero point is ",
                   name_of(zero_point->spec.dtype), " for a factor of ", name_of(dtype));
    return shifted(call.build, x, zero_point);
}

Factor shifted(Builder& build, Ref x, Ref zero_point) {
    Factor made{zero_point
                    ? build.add_unfolded("Pointwise", {x, zero_point},
                                         {{"code", "y0 = x0 - x1"}, {"dtypes", Strings{"float"}}})
                    : build.add_unfolded("Cast", {x}, {{"dtype", "float"}}),
                {}};
    const bool single = !zero_point || zero_point->spec.shape.numel() == 1;
    if (!x->known || (zero_point && !zero_point->known)) return made;
    made.known = to_integers(*x->known);
    if (single) {
        const std::int64_t zero = zero_point ? to_integers(*zero_point->known)[0] : 0;
        for (std::int64_t& value : made.known) value = std::abs(value - zero);
    } else {  // by channel: what is largest for any of them
        const Ints zeros = to_integers(*zero_point->known);
        const auto [low, high] = std::minmax_element(zeros.begin(), zeros.end());
        for (std::int64_t& value : made.known)
            value = std::max(std::abs(value - *low), std::abs(value - *high));
    }
    return made;
}

Factor settled(Factor factor) {
    factor.cuts = matrix_cuts(factor).at;
    factor.known.clear();
    return factor;
}

Ref exact_matmul(Call& call, const Factor& a, const Factor& b, DType dtype) {
    const Shape &left = a.value->spec.shape, &right = b.value->spec.shape;
    call.check(left.rank() >= 1 && right.rank() >= 1, "factors of shapes ", left.str(), " and ",
               right.str(), " are no matrices");
    call.check(right[row_axis(right)] == left[-1], "factors of shapes ", left.str(), " and ",
               right.str(), " do not fit");
    return product_of(call.build, a, b, dtype);
}

Ref scaled_matmul(Builder& build, const Quantized& a, const Factor& b, Ref b_scale, Ref bias) {
    const Ref sums = product_of(build, shifted(build, a.value, a.zero), b, DType::f32);
    return scaled(build, sums, a.scale, b_scale, bias);
}

Ref scaled(Builder& build, Ref sums, Ref left_scale, Ref right_scale, Ref bias) {
    std::vector<Ref> inputs{sums, left_scale, right_scale};
    if (bias) inputs.push_back(bias);
    return build.pointwise(bias ? "y0 = x0 * (x1 * x2) + x3" : "y0 = x0 * (x1 * x2)", inputs,
                           DType::f32);
}

Ref exact_convolution(Call& call, const Factor& images, const Factor& weights,
                      const Windows& windows, std::int64_t groups) {
    Builder& build = call.build;
    const Shape shape = images.value->spec.shape;
    const Shape own = weights.value->spec.shape;
    const std::int64_t channels = own[1], window = own[2] * own[3];
    const bool known = !weights.known.empty();
    call.supports(known || window <= most_products || channels <= 0, "a kernel of ", window,
                  " computed integers is too large for exact sums");
    const Cuts cuts =
        known ? Cuts(own[0], channels, window, weights.known) : Cuts(channels, window);
    Ref widened = weights.value;
    Ints kernel = windows.kernel, pad = windows.pad;
    widen(build, windows, widened, kernel, pad);
    const Ref grouped =
        cuts.parts() == 1
            ? images.value
            : build.reshape(images.value, {shape[0], groups, channels, shape[2], shape[3]}, 0);
    IntegerSum sum(build);
    for (std::size_t i = 0; i < cuts.parts(); ++i) {
        const std::int64_t begin = cuts.at[i], end = cuts.at[i + 1], in = groups * (end - begin);
        Ref x = grouped;
        if (cuts.parts() > 1)
            x = build.reshape(build.slice(grouped, 2, begin, end),
                              {shape[0], in, shape[2], shape[3]}, 0);
        sum.add(build.add1("Convolution", {x},
                           {{"channels_in", in},
                            {"channels_out", own[0]},
                            {"groups", groups},
                            {"bias", false},
                            {"kernel", kernel},
                            {"stride", windows.stride},
                            {"dilate", windows.dilation},
                            {"pad", pad}},
                           {build.slice(widened, 1, begin, end)}));
    }
    return sum.sum();
}

}  // namespace dlprim::onnx
