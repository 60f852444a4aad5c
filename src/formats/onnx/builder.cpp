// SPDX-License-Identifier: MIT
// Builder: adding operators; see builder.hpp.
#include "formats/onnx/builder.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

/// Copies of what the model stores, in other shapes, orders and types, do not count against
/// limit_known_bytes() as long as they are not more than so many times as large.
constexpr std::uint64_t copies_of_stored = 8;

void check_params(const std::vector<ParamSpec>& wanted, const std::vector<Ref>& given) {
    require(wanted.size() == given.size(), "wants ", wanted.size(), " parameters, got ",
            given.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const TensorSpec &want = wanted[i].spec, &have = given[i]->spec;
        if (want != have)
            fail(ErrorKind::invalid_argument, "parameter ", i, " is ", name_of(have.dtype), " ",
                 have.shape.str(), ", it must be ", name_of(want.dtype), " ", want.shape.str());
    }
}

}  // namespace

BuiltValue& Builder::make(const TensorSpec& spec, const std::string& name) {
    BuiltValue value;
    value.spec = spec;
    value.index = values();
    values_.push_back(std::move(value));
    if (!name.empty()) names_[&values_.back()] = name;
    return values_.back();
}

Ref Builder::fed(const TensorSpec& spec, const std::string& name) {
    BuiltValue& value = make(spec, name);
    value.fed = fed_++;
    if (spec.shape.empty()) value.known = allocate(spec.shape, spec.dtype);
    return &value;
}

Ref Builder::input(const std::string& name, const TensorSpec& spec) {
    const Ref value = fed(spec, name);
    if (!value->known) inputs_.push_back(value);
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

Ref Builder::strings(const std::string& name, const Shape& shape,
                     const std::vector<std::string>& values) {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : values) {
        const auto next = static_cast<std::int64_t>(texts_.size());
        const auto [place, is_new] = text_numbers_.try_emplace(text, next);
        if (is_new) {
            claim({std::ssize(text)}, DType::u8);
            texts_.push_back(text);
        }
        numbers.push_back(place->second);
    }
    return as_strings(constant(name, host_integers(shape, numbers)));
}

Ref Builder::as_strings(Ref value) {
    values_[static_cast<std::size_t>(value->index)].strings = true;
    return value;
}

std::vector<std::string> Builder::texts(Ref value) {
    std::vector<std::string> result;
    for (const std::int64_t number : to_integers(*value->known)) {
        if (number < 0 || number >= std::ssize(texts_))
            fail(ErrorKind::format, "a tensor of strings has elements that are none");
        const std::string& text = texts_[static_cast<std::size_t>(number)];
        claim({std::ssize(text)}, DType::u8);
        result.push_back(text);
    }
    return result;
}

void Builder::allow_copies_of(std::uint64_t bytes) {
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - most_known_bytes_;
    most_known_bytes_ += std::min(room / copies_of_stored, bytes) * copies_of_stored;
}

void Builder::claim(const Shape& shape, DType dtype) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
    if (bytes > most_known_bytes_ || known_bytes_ > most_known_bytes_ - bytes)
        fail(
            ErrorKind::unsupported, "a constant of ", dlprim::name_of(dtype), " ", shape.str(),
            " takes ", bytes,
            " bytes; with it, the values that the model makes while it is imported would take more "
            "than ",
            most_known_bytes_, " bytes, the limit (an ONNXSession can have another one)");
    known_bytes_ += bytes;
}

std::shared_ptr<HostTensor> Builder::allocate(const Shape& shape, DType dtype) {
    claim(shape, dtype);
    auto made = std::make_shared<HostTensor>();
    made->shape = shape;
    made->dtype = dtype;
    made->data.resize(static_cast<std::size_t>(shape.numel()) * size_of(dtype));
    return made;
}

HostValue ValueCopies::find(const HostValue& from, const std::string& kind) const {
    const auto known = known_.find({from.get(), kind});
    // The address may be that of a value that is gone.
    if (known == known_.end() || known->second.from.lock() != from) return nullptr;
    return known->second.copy.lock();
}

void ValueCopies::add(const HostValue& from, const std::string& kind, const HostValue& copy) {
    if (known_.size() >= 2 * alive_) {
        std::erase_if(known_, [](const auto& entry) { return entry.second.copy.expired(); });
        alive_ = std::max<std::size_t>(64, known_.size());
    }
    known_[{from.get(), kind}] = {from, copy};
}

Ref Builder::copy(Ref value, const std::string& kind, const Shape& shape, DType dtype,
                  const std::function<void(HostTensor& made)>& fill) {
    HostValue copy = copies_->find(value->known, kind);
    if (copy) {
        claim(shape, dtype);
    } else {
        const std::shared_ptr<HostTensor> made = allocate(shape, dtype);
        fill(*made);
        copy = made;
        copies_->add(value->known, kind, copy);
    }
    return constant(name_of(value), std::move(copy), value->stored);
}

std::vector<Ref> Builder::known_results(const std::vector<TensorSpec>& outputs,
                                        std::vector<HostValue> values) {
    std::vector<Ref> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        BuiltValue& value = make(outputs[i]);
        if (values.empty()) {
            value.known = allocate(outputs[i].shape, outputs[i].dtype);
        } else {
            claim(outputs[i].shape, outputs[i].dtype);
            value.known = std::move(values[i]);
        }
        results.push_back(&value);
    }
    return results;
}

std::vector<Ref> Builder::add(std::string_view type, const std::vector<Ref>& inputs,
                              const Attrs& options, const std::vector<Ref>& params) {
    return add(type, inputs, options, params, true);
}

Ref Builder::add_unfolded(std::string_view type, const std::vector<Ref>& inputs,
                          const Attrs& options) {
    return add(type, inputs, options, {}, false).at(0);
}

std::vector<Ref> Builder::add(std::string_view type, const std::vector<Ref>& inputs,
                              const Attrs& options, const std::vector<Ref>& params, bool folds) {
    BuiltOperator made{std::string(type), operator_names_.unused(at_), options, inputs, params, {}};
    const auto where = [&] { return cat("[", type, " '", made.name, "'] "); };
    const auto [op, complete, alias, own] =
        OperatorRegistry::instance().complete(type, options, where);
    std::vector<TensorSpec> specs, outputs;
    std::vector<HostValue> known;
    const Shape* empty = nullptr;
    for (const auto* list : {&inputs, &params}) {
        for (Ref value : *list) {
            if (value->spec.shape.empty()) empty = &value->spec.shape;
            specs.push_back(value->spec);
            if (value->known) known.push_back(value->known);
        }
    }
    try {
        check_params(op.params(complete, {specs.data(), inputs.size()}), params);
        outputs = op.infer(complete, specs);
    } catch (const Error& error) {
        throw Error(error.kind(), where() + error.what());
    }
    if (std::all_of(outputs.begin(), outputs.end(),
                    [](const TensorSpec& output) { return output.shape.empty(); }))
        return known_results(outputs, {});
    if (folds && known.size() == specs.size() && !specs.empty()) {
        std::vector<HostValue> folded = fold(op, complete, known, outputs);
        if (!folded.empty()) return known_results(outputs, std::move(folded));
    }
    if (empty != nullptr)
        fail(ErrorKind::invalid_argument, where(), "a tensor of shape ", empty->str(),
             " has no elements; such tensors are read only where they are constant and give sizes");
    for (const TensorSpec& output : outputs) {
        BuiltValue& value = make(output);
        value.producer = static_cast<int>(made_.size());
        made.outputs.push_back(&value);
    }
    operator_names_.insert(made.name);
    pending_.push_back(made_.size());
    made_.push_back(std::move(made));
    taken_.push_back(false);
    return made_.back().outputs;
}

Ref Builder::add1(std::string_view type, const std::vector<Ref>& inputs, const Attrs& options,
                  const std::vector<Ref>& params) {
    return add(type, inputs, options, params).at(0);
}

Ref Builder::pointwise(std::string_view code, const std::vector<Ref>& inputs,
                       const std::vector<double>& scalars, std::optional<DType> dtype) {
    return pointwise_of({}, code, inputs, dtype, scalars);
}

Ref Builder::pointwise(std::string_view code, const std::vector<Ref>& inputs, DType dtype) {
    return pointwise_of({}, code, inputs, dtype);
}

Ref Builder::pointwise_of(const Shape& shape, std::string_view code, const std::vector<Ref>& inputs,
                          std::optional<DType> dtype, const std::vector<double>& scalars) {
    Attrs options{{"code", std::string(code)}};
    if (shape.rank() > 0) options.set("shape", shape.to_vector());
    if (!scalars.empty()) options.set("scalars", scalars);
    if (dtype) options.set("dtypes", Strings{std::string(dlprim::name_of(*dtype))});
    return add1("Pointwise", inputs, options);
}

Ref Builder::reshape(Ref value, const Shape& shape, int deduced) {
    if (value->spec.shape == shape) return value;
    if (value->known) {
        return copy(value, cat("reshape ", shape.str()), shape, value->spec.dtype,
                    [&](HostTensor& made) { made.data = value->known->data; });
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
        return copy(value, cat("cast ", dlprim::name_of(dtype)), value->spec.shape, dtype,
                    [&](HostTensor& made) {
                        convert(value->known->data.data(), value->known->dtype, made.data.data(),
                                dtype, static_cast<std::size_t>(made.shape.numel()));
                    });
    }
    return add1("Cast", {value}, {{"dtype", std::string(dlprim::name_of(dtype))}});
}

Ref Builder::slice(Ref value, int axis, std::int64_t begin, std::int64_t end) {
    const Shape& shape = value->spec.shape;
    if (axis < 0) axis += shape.rank();
    if (begin == 0 && end == shape[axis]) return value;
    if (begin >= end) return constant("", allocate(shape.with(axis, 0), value->spec.dtype));
    return add1("Slice", {value}, {{"dim", axis}, {"begin", begin}, {"end", end}});
}

Ref Builder::concat(const std::vector<Ref>& parts, int axis) {
    return parts.size() == 1 ? parts[0] : add1("Concat", parts, {{"dim", axis}});
}

namespace {

Shape transposed_shape(const Shape& shape, const Ints& order) {
    Ints sizes;
    for (const std::int64_t dim : order) sizes.push_back(shape[static_cast<int>(dim)]);
    return Shape(sizes);
}

void fill_transposed(HostTensor& made, const HostTensor& from, const Ints& order) {
    Ints strides;  // in `from`, by the result's dimensions
    for (const std::int64_t dim : order)
        strides.push_back(from.shape.product(static_cast<int>(dim) + 1, from.shape.rank()));
    const std::size_t size = size_of(from.dtype);
    Ints at(order.size(), 0);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i * size < made.data.size(); ++i) {
        std::copy_n(from.data.data() + static_cast<std::size_t>(offset) * size, size,
                    made.data.data() + i * size);
        for (std::size_t d = order.size(); d-- > 0;) {
            const std::int64_t most = made.shape[static_cast<int>(d)];
            offset += strides[d];
            if (++at[d] < most) break;
            offset -= strides[d] * most;
            at[d] = 0;
        }
    }
}

}  // namespace

Ref Builder::transpose(Ref value, const std::vector<std::int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return value;
    const bool fits = static_cast<int>(order.size()) == value->spec.shape.rank();
    const bool is_copied = value->known && fits && !value->spec.shape.empty();
    const Ref made =
        is_copied ? copy(value, cat("transpose ", Shape(order).str()),
                         transposed_shape(value->spec.shape, order), value->spec.dtype,
                         [&](HostTensor& copied) { fill_transposed(copied, *value->known, order); })
                  : add1("Transpose", {value}, {{"dims", Ints(order)}});
    if (const Dequantized* from = note_of(value)) {
        Dequantized turned = *from;
        turned.is_transposed = !turned.is_transposed;
        note(made, turned);
    }
    return made;
}

void Builder::name(Ref value, const std::string& name) {
    names_.emplace(value, name);
}

std::string Builder::name_of(Ref value) const {
    const auto found = names_.find(value);
    return found == names_.end() ? std::string() : found->second;
}

}  // namespace dlprim::onnx
