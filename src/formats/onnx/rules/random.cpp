// SPDX-License-Identifier: MIT
// Random tensors; see random.hpp.
#include "formats/onnx/rules/shared.hpp"

#include <bit>
#include <cmath>

namespace dlprim::onnx {

namespace {

DType float_type_of(Call& call, DType otherwise) {
    const DType dtype = call.type("dtype", otherwise);
    call.supports(is_float(dtype), "random numbers of ", name_of(dtype), " are not supported");
    return dtype;
}

/// A program of random numbers without inputs; its scalars are the keys and then `more`.
Ref drawn(Call& call, const Shape& shape, DType dtype, const char* code,
          const std::vector<double>& more) {
    std::vector<double> scalars = random_keys(call);
    scalars.insert(scalars.end(), more.begin(), more.end());
    return call.build.pointwise_of(shape, code, {}, dtype, scalars);
}

void uniform(Call& call, const Shape& shape, DType dtype) {
    const double low = call.number("low", 0), high = call.number("high", 1);
    call.set(0, drawn(call, shape, dtype, "y0 = p2 + uniform(p0, 0, p1) * p3", {low, high - low}));
}

/// Normal numbers by Box and Muller's method, of two uniform ones.
void normal(Call& call, const Shape& shape, DType dtype) {
    const double mean = call.number("mean", 0), scale = call.number("scale", 1);
    call.set(0, drawn(call, shape, dtype,
                      "r = sqrt(-2 * log(1 - uniform(p0, 0, p1)));"
                      "y0 = p2 + r * cos(uniform(p0, 1, p1) * p4) * p3",
                      {mean, scale, 8 * std::atan(1.0)}));
}

using Draw = void (*)(Call&, const Shape&, DType);

template <Draw draw>
void by_shape(Call& call) {
    const Ints sizes = call.integers("shape");
    call.check(call.given("shape"), "attribute 'shape' is missing");
    for (const std::int64_t size : sizes) call.check(size >= 0, "a size of ", size);
    draw(call, Shape(sizes), float_type_of(call, DType::f32));
}

template <Draw draw>
void by_input(Call& call) {
    draw(call, call.shape(0),
         float_type_of(call, is_float(call.dtype(0)) ? call.dtype(0) : DType::f32));
}

void bernoulli(Call& call) {
    const DType dtype = call.type("dtype", call.dtype(0));
    call.set(0, call.build.pointwise("y0 = uniform(p0, 0, p1) < x0", {call.in(0)},
                                     random_keys(call), dtype));
}

/// Classes by their log-probabilities: to each a number of Gumbel's distribution is added, and the
/// largest sum is the class that is drawn (the Gumbel-max method).
void multinomial(Call& call) {
    const Shape& x = call.shape(0);
    const std::int64_t samples = call.integer("sample_size", 1);
    const DType dtype = call.type("dtype", DType::i32);
    call.check(x.rank() == 2, "an input of shape ", x.str(), " is no matrix");
    call.check(samples >= 1 && samples < (1 << 24), "sample_size is ", samples);
    call.supports(x[1] < (1 << 24), x[1], " classes are too many");
    Builder& build = call.build;
    const Ref sums =
        build.pointwise_of({x[0], samples, x[1]}, "y0 = x0 - log(-log1p(-uniform(p0, 0, p1)))",
                           {build.reshape(call.in(0), {x[0], 1, x[1]}, 0)}, {}, random_keys(call));
    const Ref top = build.pointwise("y0 = max[2](x0)", {sums});
    const Ref place =
        build.pointwise("y0 = min[2](x0 == x1 ? index(2) : size(2) - 1)", {sums, top}, dtype);
    call.set(0, build.reshape(place, {x[0], samples}, 0));
}

}  // namespace

std::vector<double> random_keys(Call& call) {
    double seed = 0;
    const Attribute* const given = call.attribute("seed");
    if (given && std::holds_alternative<std::int64_t>(given->data))
        seed = static_cast<double>(call.integer("seed", 0) & 0xffffffff);
    else if (given)
        seed = std::bit_cast<std::uint32_t>(static_cast<float>(call.number("seed", 0)));
    std::uint32_t name = 2166136261;  // FNV-1a
    if (!given)
        for (const std::string& output : call.node().outputs)
            for (const char c : output) name = (name ^ static_cast<unsigned char>(c)) * 16777619;
    return {seed, static_cast<double>(name)};
}

std::vector<Ref> random_dropout(Call& call, Ref x, Ref ratio) {
    return call.build.add("Pointwise", {x, call.build.reshape(ratio, {})},
                          {{"code",
                            "keep = uniform(p0, 0, p1) >= x1;"
                            "y0 = keep ? x0 / (1 - x1) : 0; y1 = keep"},
                           {"scalars", Doubles(random_keys(call))},
                           {"dtypes", Strings{std::string(name_of(x->spec.dtype)), "bool"}}});
}

std::vector<Rule> random_rules() {
    return {
        {"RandomUniform", 1, by_shape<uniform>},
        {"RandomUniformLike", 1, by_input<uniform>},
        {"RandomNormal", 1, by_shape<normal>},
        {"RandomNormalLike", 1, by_input<normal>},
        {"Bernoulli", 15, bernoulli},
        {"Multinomial", 7, multinomial},
    };
}

}  // namespace dlprim::onnx
