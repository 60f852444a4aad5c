// SPDX-License-Identifier: MIT
// Builder: adding operators; see builder.hpp.
#include "formats/onnx/builder.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

void check_params(const std::vector<ParamSpec>& wanted, const std::vector<Ref>& given) {
    require(wanted.size() == given.size(), "wants ", wanted.size(), " parameters, got ",
            given.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const TensorSpec &want = wanted[i].spec, &have = given[i]->spec;
        require(want == have, "parameter ", i, " is ", name_of(have.dtype), " ", have.shape.str(),
                ", it must be ", name_of(want.dtype), " ", want.shape.str());
    }
}

}  // namespace

BuiltValue& Builder::make(const TensorSpec& spec, const std::string& name) {
    values_.push_back({spec, nullptr, false, -1});
    if (!name.empty()) names_[&values_.back()] = name;
    return values_.back();
}

Ref Builder::input(const std::string& name, const TensorSpec& spec) {
    inputs_.push_back({name, spec.shape, spec.dtype});
    tensor_names_.insert(name);
    const Ref value = &make(spec, name);
    tensors_[value] = name;
    return value;
}

Ref Builder::constant(const std::string& name, HostValue value, bool stored) {
    BuiltValue& made = make({value->shape, value->dtype}, name);
    made.known = std::move(value);
    made.stored = stored;
    return &made;
}

Ref Builder::integers(const std::string& name, const std::vector<std::int64_t>& values) {
    return constant(name, host_integers(Shape{static_cast<std::int64_t>(values.size())}, values));
}

std::vector<Ref> Builder::add(std::string_view type, const std::vector<Ref>& inputs,
                              const Attrs& options, const std::vector<Ref>& params) {
    const Operator& op = OperatorRegistry::instance().get(type);
    BuiltOperator made{
        std::string(type), unique(at_, operator_names_), options, inputs, params, {}};
    const std::string where = cat("[", type, " '", made.name, "'] ");
    const Attrs complete = op.schema().complete(options, where);
    std::vector<TensorSpec> specs, outputs;
    std::vector<HostValue> known;
    for (const auto* list : {&inputs, &params}) {
        for (Ref value : *list) {
            require(!value->spec.shape.empty(), where, "a tensor of shape ",
                    value->spec.shape.str(),
                    " has no elements; such tensors are read only where they are constant and "
                    "give sizes");
            specs.push_back(value->spec);
            if (value->known) known.push_back(value->known);
        }
    }
    try {
        check_params(op.params(complete, {specs.data(), inputs.size()}), params);
        outputs = op.infer(complete, specs);
    } catch (const Error& error) {
        throw Error(error.kind(), where + error.what());
    }
    std::vector<HostValue> folded;
    if (known.size() == specs.size() && !specs.empty()) folded = fold(op, complete, known, outputs);
    const bool emitted = folded.empty();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        BuiltValue& value = make(outputs[i]);
        if (emitted)
            value.producer = static_cast<int>(made_.size());
        else
            value.known = folded[i];
        made.outputs.push_back(&value);
    }
    const std::vector<Ref> result = made.outputs;
    if (emitted) {
        operator_names_.insert(made.name);
        made_.push_back(std::move(made));
    }
    return result;
}

Ref Builder::add1(std::string_view type, const std::vector<Ref>& inputs, const Attrs& options,
                  const std::vector<Ref>& params) {
    return add(type, inputs, options, params).at(0);
}

Ref Builder::pointwise(std::string_view code, const std::vector<Ref>& inputs,
                       const std::vector<double>& scalars, std::string_view dtype) {
    Attrs options{{"code", std::string(code)}};
    if (!scalars.empty()) options.set("scalars", Doubles(scalars));
    if (!dtype.empty()) options.set("dtypes", Strings{std::string(dtype)});
    return add1("Pointwise", inputs, options);
}

Ref Builder::reshape(Ref value, const Shape& shape, int deduced) {
    if (value->spec.shape == shape) return value;
    if (value->known) {
        auto copy = std::make_shared<HostTensor>(*value->known);
        copy->shape = shape;
        return constant(name_of(value), std::move(copy), value->stored);
    }
    Ints dims = shape.to_vector();
    const bool keeps_first =
        !dims.empty() && value->spec.shape.rank() > 0 && dims[0] == value->spec.shape[0];
    if (deduced >= 0 && !(keeps_first && deduced == 0))
        dims[static_cast<std::size_t>(deduced)] = -1;
    if (keeps_first) dims[0] = 0;
    return add1("Reshape", {value}, {{"dims", dims}});
}

Ref Builder::cast(Ref value, DType dtype) {
    if (value->spec.dtype == dtype) return value;
    if (value->known) {
        auto made = std::make_shared<HostTensor>();
        made->shape = value->known->shape;
        made->dtype = dtype;
        const auto count = static_cast<std::size_t>(made->shape.numel());
        made->data.resize(count * size_of(dtype));
        convert(value->known->data.data(), value->known->dtype, made->data.data(), dtype, count);
        return constant(name_of(value), std::move(made), value->stored);
    }
    return add1("Cast", {value}, {{"dtype", std::string(dlprim::name_of(dtype))}});
}

Ref Builder::transpose(Ref value, const std::vector<std::int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return value;
    if (!value->known || order.size() != 2)
        return add1("Transpose", {value}, {{"dims", Ints(order)}});
    const HostTensor& from = *value->known;
    auto made = std::make_shared<HostTensor>();
    const std::int64_t rows = from.shape[0], columns = from.shape[1];
    made->shape = Shape{columns, rows};
    made->dtype = from.dtype;
    made->data.resize(from.data.size());
    const std::size_t size = size_of(from.dtype);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            std::copy_n(from.data.data() + static_cast<std::size_t>(i * columns + j) * size, size,
                        made->data.data() + static_cast<std::size_t>(j * rows + i) * size);
    return constant(name_of(value), std::move(made), value->stored);
}

void Builder::name(Ref value, const std::string& name) {
    names_.emplace(value, name);
}

std::string Builder::name_of(Ref value) const {
    const auto found = names_.find(value);
    return found == names_.end() ? std::string() : found->second;
}

std::string Builder::unique(const std::string& wanted, const std::set<std::string>& taken) {
    if (!taken.count(wanted)) return wanted;
    int& next = next_.try_emplace({&taken, wanted}, 2).first->second;
    while (taken.count(cat(wanted, "#", next))) ++next;
    return cat(wanted, "#", next);
}

}  // namespace dlprim::onnx
