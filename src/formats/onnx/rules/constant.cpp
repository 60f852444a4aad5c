// SPDX-License-Identifier: MIT
// Values that the model itself holds or makes of shapes: they are known here.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

constexpr std::int64_t longest_range = std::int64_t{1} << 32;

Ref known(Call& call, HostValue value) {
    return call.build.constant("", std::move(value));
}

/// The tensor of attribute 'value'.
const Tensor& value_of(Call& call, const Attribute& attribute) {
    const auto* const tensor = std::get_if<Tensor>(&attribute.data);
    call.check(tensor != nullptr, "attribute 'value' is no tensor");
    call.supports(tensor->value || tensor->strings, "the value ", tensor->refusal);
    return *tensor;
}

Ref strings(Call& call, const Shape& shape, const std::vector<std::string>& values) {
    return call.build.strings("", shape, values);
}

void constant(Call& call) {
    if (const Attribute* const value = call.attribute("value")) {
        const Tensor& tensor = value_of(call, *value);
        const Ref made = tensor.value
                             ? known(call, tensor.value)
                             : strings(call, tensor.strings->shape, tensor.strings->values);
        return call.set(0, AnyValue(made, tensor.wide_dims));
    }
    if (call.given("value_string"))
        return call.set(0, strings(call, {}, {call.text("value_string", "")}));
    if (call.given("value_strings")) {
        const std::vector<std::string> values = call.texts("value_strings");
        return call.set(0, strings(call, {std::ssize(values)}, values));
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
    auto made = call.build.allocate(shape, element.dtype);
    const std::size_t size = element.data.size();
    for (std::size_t at = 0; at < made->data.size(); at += size)
        std::copy_n(element.data.begin(), size,
                    made->data.begin() + static_cast<std::ptrdiff_t>(at));
    return made;
}

void constant_of_shape(Call& call) {
    const Ints sizes = call.known_integers(0, "the sizes");
    const bool is_wide = std::ssize(sizes) > Shape::max_rank;
    HostValue element = host_numbers({}, {0}, DType::f32);
    if (const Attribute* const value = call.attribute("value")) {
        element = value_of(call, *value).value;
        call.check(element && element->shape.numel() == 1, "attribute 'value' is no single number");
    }
    const Shape shape = is_wide ? Shape{element_count(sizes)} : Shape(sizes);
    call.set(0, AnyValue(known(call, filled(call, shape, *element)), is_wide ? sizes : Ints{}));
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
    call.supports(count <= static_cast<double>(longest_range), "a range of ", count,
                  " elements is too long");
    call.build.claim({static_cast<std::int64_t>(count)}, DType::f64);
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = start + static_cast<double>(i) * delta;
    call.set(0,
             known(call, host_numbers({static_cast<std::int64_t>(values.size())}, values, dtype)));
}

void shape(Call& call) {
    const Ints input = call.dims(0);
    const std::int64_t rank = std::ssize(input);
    const auto clamp = [&](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const std::int64_t begin = clamp(call.integer("start", 0)),
                       end = clamp(call.integer("end", rank));
    Ints sizes;
    for (std::int64_t i = begin; i < end; ++i) sizes.push_back(input[static_cast<std::size_t>(i)]);
    call.set(0, known(call, host_integers({static_cast<std::int64_t>(sizes.size())}, sizes)));
}

void size(Call& call) {
    call.set(0, known(call, host_integers({}, {call.elements(0)->spec.shape.numel()})));
}

}  // namespace

std::vector<Rule> constant_rules() {
    return {
        {"Constant", 1, constant},
        {"ConstantOfShape", 9, constant_of_shape},
        {"Range", 11, range},
        {"Shape", 1, shape, Rule::Strings::own},
        {"Size", 1, size, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
