// SPDX-License-Identifier: MIT
// Fourier transforms as products with a matrix of sines and cosines, which is a constant: DFT
// multiplies its lines by it, STFT is a convolution with it.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// Of elements of such a matrix.
constexpr std::int64_t most_transformed = 1 << 24;

/// The transform of `points` points from n lines of `in` numbers (real, or real and imaginary) to
/// `count` lines of `out` numbers.
struct Transform {
    std::int64_t points = 0;
    std::int64_t n = 0, count = 0;
    int in = 1, out = 2;
    bool inverse = false;
    bool from_half = false;  ///< the inverse of a spectrum whose second half is the first's mirror

    /// What input (line j, part a) contributes to output (line k, part b).
    double weight(std::int64_t j, int a, std::int64_t k, int b) const {
        double scale = inverse ? 1 / static_cast<double>(points) : 1;
        if (j >= (from_half ? points / 2 + 1 : points)) return 0;  // cut off
        const bool has_mirror = from_half && j > 0 && 2 * j != points;
        if (has_mirror) scale *= 2;
        const double angle = 8 * std::atan(1.0) *
                             static_cast<double>((j % points) * (k % points) % points) /
                             static_cast<double>(points);
        // (re + i im) (cos +- i sin)
        const double sine = inverse ? std::sin(angle) : -std::sin(angle);
        const double value = a == b ? std::cos(angle) : a == 0 ? sine : -sine;
        return scale * value;
    }
    void check_size(const Call& call) const {
        call.supports(n <= most_transformed / 4 && count <= most_transformed / (4 * n),
                      "a transform of ", n, " to ", count, " points is too large");
    }
};

std::int64_t parts_of(const Call& call, const Shape& x) {
    call.check(x.rank() >= 2 && (x[-1] == 1 || x[-1] == 2), "an input of shape ", x.str(),
               " holds neither real nor complex numbers");
    return x[-1];
}

std::int64_t length_of(Call& call, int input, std::int64_t otherwise) {
    const std::int64_t length =
        call.has(input) ? call.known_integer(input, "the lengths of transforms") : otherwise;
    call.check(length >= 1, "a transform of ", length, " points");
    return length;
}

/// Lines along `axis` times the transform's matrix.
Ref transformed(Call& call, const Transform& t, int axis) {
    Builder& build = call.build;
    const Shape& x = call.shape(0);
    const int last = x.rank() - 2;
    Ints order;
    for (int i = 0; i < x.rank(); ++i)
        if (i != axis) order.push_back(i);
    order.insert(order.end() - 1, axis);
    Ref value = build.transpose(call.in(0), order);
    Ints sizes = value->spec.shape.to_vector();
    const std::int64_t rows = x.numel() / (x[axis] * t.in);
    value = build.reshape(value, {rows, t.n * t.in}, 0);
    build.claim({t.n * t.in, t.count * t.out}, DType::f64);
    std::vector<double> matrix;
    for (std::int64_t j = 0; j < t.n; ++j)
        for (int a = 0; a < t.in; ++a)
            for (std::int64_t k = 0; k < t.count; ++k)
                for (int b = 0; b < t.out; ++b) matrix.push_back(t.weight(j, a, k, b));
    const Ref weights =
        build.constant("", host_numbers({t.n * t.in, t.count * t.out}, matrix, call.dtype(0)));
    if (call.dtype(0) == DType::f64)  // MatMul computes in float
        value = build.pointwise("y0 = sum[1](x0 * x1)",
                                {build.reshape(value, {rows, t.n * t.in, 1}, 0), weights});
    else
        value = build.add1("MatMul", {value, weights});
    sizes[sizes.size() - 2] = t.count;
    sizes.back() = t.out;
    value = build.reshape(value, Shape(sizes), 0);
    Ints back;
    for (int i = 0; i < last; ++i) back.push_back(i);
    back.insert(back.begin() + axis, last);
    back.push_back(last + 1);
    return build.transpose(value, back);
}

void fourier(Call& call, int axis) {
    const Shape& x = call.shape(0);
    Transform t;
    t.in = static_cast<int>(parts_of(call, x));
    call.check(is_float(call.dtype(0)), "the input is ", name_of(call.dtype(0)),
               "; it must be a float");
    call.check(axis < x.rank() - 1, "axis ", axis, " is that of real and imaginary parts");
    t.inverse = call.integer("inverse", 0) != 0;
    const bool onesided = call.integer("onesided", 0) != 0;
    t.n = x[axis];
    call.check(t.n >= 1, "an input of shape ", x.str(), " has no elements");
    t.from_half = t.inverse && onesided;
    t.points = length_of(call, 1, t.from_half ? std::max<std::int64_t>(2 * (t.n - 1), 1) : t.n);
    t.count = onesided && !t.inverse ? t.points / 2 + 1 : t.points;
    t.out = t.from_half ? 1 : 2;
    t.check_size(call);
    call.set(0, transformed(call, t, axis));
}

void fourier_by_attribute(Call& call) {
    fourier(call, call.axis(call.integer("axis", 1), call.shape(0).rank()));
}

void fourier_by_input(Call& call) {
    const std::int64_t axis = call.has(2) ? call.known_integer(2, "axes") : -2;
    fourier(call, call.axis(axis, call.shape(0).rank()));
}

/// Weights [outputs * 2, parts, 1, frame] of a convolution, of which each output is a number of the
/// spectrum of a frame.
Ref frame_weights(Call& call, const Transform& t) {
    call.build.claim({t.count * 2, t.in, t.n}, DType::f64);
    std::vector<double> weights;
    for (std::int64_t k = 0; k < t.count; ++k)
        for (int b = 0; b < 2; ++b)
            for (int a = 0; a < t.in; ++a)
                for (std::int64_t j = 0; j < t.n; ++j) weights.push_back(t.weight(j, a, k, b));
    const Ref all =
        call.build.constant("", host_numbers({t.count * 2, t.in, 1, t.n}, weights, call.dtype(0)));
    if (!call.has(2)) return all;
    call.check(call.shape(2) == Shape{t.n}, "a window of shape ", call.shape(2).str(),
               " for frames of ", t.n, " elements");
    return call.build.pointwise("y0 = x0 * x1", {all, call.in(2)}, call.dtype(0));
}

void short_time_fourier(Call& call) {
    Builder& build = call.build;
    const Shape& given = call.shape(0);
    call.check(given.rank() == 2 || given.rank() == 3, "a signal of shape ", given.str());
    const Ref signal =
        given.rank() == 3 ? call.in(0) : build.reshape(call.in(0), {given[0], given[1], 1}, 0);
    const Shape& x = signal->spec.shape;
    call.check(call.has(2) || call.has(3), "there is neither a window nor a frame_length");
    const std::int64_t step = call.known_integer(1, "steps of frames");
    Transform t;
    t.in = static_cast<int>(parts_of(call, x));
    t.n = t.points = length_of(call, 3, call.has(2) ? call.shape(2).numel() : 1);
    call.check(step >= 1 && t.n <= x[1], "frames of ", t.n, " elements, ", step,
               " apart, of a signal of shape ", x.str());
    const bool onesided = call.integer("onesided", 1) != 0;
    call.check(!onesided || t.in == 1, "onesided is for real signals");
    t.count = onesided ? t.n / 2 + 1 : t.n;
    t.check_size(call);
    const Ref image = build.reshape(t.in == 1 ? signal : build.transpose(signal, {0, 2, 1}),
                                    {x[0], t.in, 1, x[1]}, 0);
    const std::int64_t frames = (x[1] - t.n) / step + 1;
    const Ref spectra = build.add1("Convolution", {image},
                                   {{"channels_in", static_cast<std::int64_t>(t.in)},
                                    {"channels_out", t.count * 2},
                                    {"groups", 1},
                                    {"bias", false},
                                    {"kernel", Ints{1, t.n}},
                                    {"stride", Ints{1, step}},
                                    {"dilate", Ints{1, 1}},
                                    {"pad", Ints{0, 0, 0, 0}}},
                                   {frame_weights(call, t)});
    const Ref rows = build.reshape(spectra, {x[0], t.count * 2, frames}, 0);
    call.set(0, build.reshape(build.transpose(rows, {0, 2, 1}), {x[0], frames, t.count, 2}, 0));
}

}  // namespace

std::vector<Rule> fourier_rules() {
    return {
        {"DFT", 17, fourier_by_attribute},
        {"DFT", 20, fourier_by_input},
        {"STFT", 17, short_time_fourier},
    };
}

}  // namespace dlprim::onnx
