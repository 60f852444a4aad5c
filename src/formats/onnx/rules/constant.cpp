// SPDX-License-Identifier: MIT
// Values that the model itself holds or makes of shapes: they are known here.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// What is made here is smaller: a file must not ask for all memory in a few bytes.
constexpr std::int64_t largest_made = 1 << 24;

Ref known(Call& call, HostValue value) {
    return call.build.constant("", std::move(value));
}

HostValue stored(Call& call, const Tensor& tensor) {
    call.supports(tensor.value != nullptr, "the value ", tensor.refusal);
    return tensor.value;
}

void constant(Call& call) {
    if (const Attribute* const value = call.attribute("value")) {
        const auto* const tensor = std::get_if<Tensor>(&value->data);
        call.check(tensor != nullptr, "attribute 'value' is no tensor");
        return call.set(0, known(call, stored(call, *tensor)));
    }
    if (call.given("value_float"))
        return call.set(0,
                        known(call, host_numbers({}, {call.number("value_float", 0)}, DType::f32)));
    if (call.given("value_int"))
        return call.set(0, known(call, host_integers({}, {call.integer("value_int", 0)})));
    if (call.given("value_ints")) {
        const Ints values = call.integers("value_ints");
        return call.set(
            0, known(call, host_integers({static_cast<std::int64_t>(values.size())}, values)));
    }
    if (const Attribute* const value = call.attribute("value_floats")) {
        const auto* const numbers = std::get_if<std::vector<double>>(&value->data);
        call.check(numbers != nullptr, "attribute 'value_floats' is no list of numbers");
        return call.set(0, known(call, host_numbers({static_cast<std::int64_t>(numbers->size())},
                                                    *numbers, DType::f32)));
    }
    call.unsupported("a constant that is neither numbers nor a tensor of them is not supported");
}

/// A known tensor whose elements are all `element`.
HostValue filled(Call& call, const Shape& shape, const HostTensor& element) {
    call.supports(shape.numel() <= largest_made, "a constant of shape ", shape.str(),
                  " is larger than ", largest_made, " elements");
    auto made = std::make_shared<HostTensor>();
    made->shape = shape;
    made->dtype = element.dtype;
    for (std::int64_t i = 0; i < shape.numel(); ++i)
        made->data.insert(made->data.end(), element.data.begin(), element.data.end());
    return made;
}

void constant_of_shape(Call& call) {
    const Shape shape(call.known_integers(0, "the sizes"));
    HostValue element = host_numbers({}, {0}, DType::f32);
    if (const Attribute* const value = call.attribute("value")) {
        const auto* const tensor = std::get_if<Tensor>(&value->data);
        call.check(tensor != nullptr, "attribute 'value' is no tensor");
        element = stored(call, *tensor);
        call.check(element->shape.numel() == 1, "attribute 'value' is no single number");
    }
    call.set(0, known(call, filled(call, shape, *element)));
}

void range(Call& call) {
    const DType dtype = call.dtype(0);
    double bounds[3];
    for (int i = 0; i < 3; ++i) {
        const std::vector<double> values = call.known_numbers(i, "start, limit and delta");
        call.check(values.size() == 1, "start, limit and delta are single numbers");
        bounds[i] = values[0];
        call.supports(is_float(dtype) || std::abs(bounds[i]) <= 9007199254740992.0,
                      "a range with a bound of ", bounds[i], " is not exact in double");
    }
    const auto [start, limit, delta] = bounds;
    call.check(delta != 0, "delta is 0");
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    call.supports(count <= static_cast<double>(largest_made), "a range of ", count,
                  " elements is too long");
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = start + static_cast<double>(i) * delta;
    call.set(0,
             known(call, host_numbers({static_cast<std::int64_t>(values.size())}, values, dtype)));
}

void shape(Call& call) {
    const Shape& input = call.shape(0);
    const auto clamp = [&](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + input.rank() : at, 0, input.rank());
    };
    const std::int64_t begin = clamp(call.integer("start", 0)),
                       end = clamp(call.integer("end", input.rank()));
    Ints sizes;
    for (std::int64_t i = begin; i < end; ++i) sizes.push_back(input[static_cast<int>(i)]);
    call.set(0, known(call, host_integers({static_cast<std::int64_t>(sizes.size())}, sizes)));
}

void size(Call& call) {
    call.set(0, known(call, host_integers({}, {call.shape(0).numel()})));
}

void non_zero(Call& call) {
    const std::vector<double> values = call.known_numbers(0, "the elements");
    const Shape& input = call.shape(0);
    const Ints strides = input.strides();
    std::vector<Ints> positions(static_cast<std::size_t>(input.rank()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] == 0) continue;
        for (std::size_t d = 0; d < positions.size(); ++d)
            positions[d].push_back(static_cast<std::int64_t>(i) / strides[d] %
                                   input[static_cast<int>(d)]);
    }
    Ints all;
    for (const Ints& one : positions) all.insert(all.end(), one.begin(), one.end());
    const std::int64_t rank = std::max(1, input.rank());
    call.set(0,
             known(call, host_integers({rank, static_cast<std::int64_t>(all.size()) / rank}, all)));
}

const Rule rules[] = {
    {"Constant", 1, constant}, {"ConstantOfShape", 9, constant_of_shape},
    {"Range", 11, range},      {"Shape", 1, shape},
    {"Size", 1, size},         {"NonZero", 9, non_zero},
};

}  // namespace

std::span<const Rule> constant_rules() {
    return rules;
}

}  // namespace dlprim::onnx
