// SPDX-License-Identifier: MIT
// Operators of the domain ai.onnx.ml that look up or choose: LabelEncoder, ArrayFeatureExtractor
// and Binarizer. Labels that are strings are known, so that they are encoded here.
#include "formats/onnx/rules/shared.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

namespace dlprim::onnx {

namespace {

/// A label: its text, or its number by its bits. All NaN are one label.
struct Label {
    std::string text;
    std::uint64_t bits = 0;
    bool operator<(const Label& other) const {
        return std::tie(text, bits) < std::tie(other.text, other.bits);
    }
};

Label of_number(const std::byte* element, DType dtype) {
    Label label;
    if (is_float(dtype)) {
        double value = 0;
        convert(element, dtype, &value, DType::f64, 1);
        if (value == 0) value = 0;  // -0 is 0
        if (std::isnan(value)) value = std::nan("");
        std::memcpy(&label.bits, &value, sizeof(value));
    } else {
        std::int64_t value = 0;
        convert(element, dtype, &value, DType::i64, 1);
        label.bits = static_cast<std::uint64_t>(value);
    }
    return label;
}

/// Keys or values: strings, or numbers of one type.
struct LabelValues {
    bool strings = false;
    std::vector<std::string> texts;
    HostValue numbers;

    std::size_t size() const {
        return strings ? texts.size() : static_cast<std::size_t>(numbers->shape.numel());
    }
    std::vector<Label> all() const {
        std::vector<Label> labels;
        for (const std::string& text : texts) labels.push_back({text, 0});
        for (std::size_t i = 0; !strings && i < size(); ++i)
            labels.push_back(
                of_number(numbers->data.data() + i * size_of(numbers->dtype), numbers->dtype));
        return labels;
    }
};

std::optional<LabelValues> from_tensor(Call& call, std::string_view name) {
    const Attribute* const found = call.attribute(name);
    if (!found) return std::nullopt;
    const auto* const tensor = std::get_if<Tensor>(&found->data);
    call.check(tensor != nullptr, "attribute '", name, "' is no tensor");
    call.supports(tensor->value || tensor->strings, "attribute '", name, "' ", tensor->refusal);
    if (tensor->strings) return LabelValues{true, tensor->strings->values, nullptr};
    return LabelValues{false, {}, tensor->value};
}

/// "keys" or "values", in whichever attribute they are.
LabelValues read_labels(Call& call, const std::string& what) {
    std::optional<LabelValues> found = from_tensor(call, what + "_tensor");
    if (call.given(what + "_strings"))
        found = LabelValues{true, call.texts(what + "_strings"), nullptr};
    if (call.given(what + "_int64s")) {
        const Ints values = call.integers(what + "_int64s");
        found = LabelValues{false, {}, host_integers({std::ssize(values)}, values)};
    }
    if (call.given(what + "_floats")) {
        const std::vector<double> values = call.numbers(what + "_floats");
        found = LabelValues{false, {}, host_numbers({std::ssize(values)}, values, DType::f32)};
    }
    call.check(found.has_value(), "there are no attributes ", what, "_tensor, ", what, "_strings, ",
               what, "_int64s or ", what, "_floats");
    return *found;
}

/// What a label that is no key becomes.
LabelValues read_default(Call& call, const LabelValues& values) {
    const double number = call.number("default_float", -0.0);
    const std::int64_t integer = call.integer("default_int64", -1);
    const std::string text = call.text("default_string", "_Unused");
    if (std::optional<LabelValues> given = from_tensor(call, "default_tensor")) {
        call.check(given->size() == 1 && given->strings == values.strings &&
                       (given->strings || given->numbers->dtype == values.numbers->dtype),
                   "attribute 'default_tensor' is no element of the values' type");
        return *given;
    }
    if (values.strings) return {true, {text}, nullptr};
    return {false,
            {},
            is_float(values.numbers->dtype) ? host_numbers({}, {number}, values.numbers->dtype)
                                            : host_integers({}, {integer}, values.numbers->dtype)};
}

/// By label, which value it has.
std::map<Label, std::size_t> table_of(const LabelValues& keys) {
    std::map<Label, std::size_t> table;
    const std::vector<Label> all = keys.all();
    for (std::size_t i = 0; i < all.size(); ++i) table[all[i]] = i;
    return table;
}

void label_encoder(Call& call) {
    Builder& build = call.build;
    const Ref x = call.in(0);
    const LabelValues keys = read_labels(call, "keys"), values = read_labels(call, "values");
    const LabelValues otherwise = read_default(call, values);
    call.check(keys.size() == values.size(), "there are ", keys.size(), " keys for ", values.size(),
               " values");
    call.check(keys.strings == x->strings, "the input is ", call.value(0).str(), ", the keys are ",
               keys.strings ? "strings" : "numbers");
    const auto place = [table = table_of(keys)](const Label& label) {
        const auto found = table.find(label);
        return found == table.end() ? std::ptrdiff_t{-1}
                                    : static_cast<std::ptrdiff_t>(found->second);
    };
    std::vector<Label> labels;
    if (x->strings) {
        for (const std::string& text : build.texts(x)) labels.push_back({text, 0});
    } else if (values.strings) {
        labels = LabelValues{false, {}, call.known(0, "labels that become strings")}.all();
    }
    if (values.strings) {
        std::vector<std::string> texts;
        texts.reserve(labels.size());
        for (const Label& label : labels)
            texts.push_back(place(label) < 0
                                ? otherwise.texts[0]
                                : values.texts[static_cast<std::size_t>(place(label))]);
        return call.set(0, build.strings("", x->spec.shape, texts));
    }
    const auto encode = [place, values, otherwise](const Shape& shape,
                                                   const std::vector<Label>& all) {
        const DType dtype = values.numbers->dtype;
        const std::size_t size = size_of(dtype);
        auto result = std::make_shared<HostTensor>();
        result->shape = shape;
        result->dtype = dtype;
        for (const Label& label : all) {
            const std::ptrdiff_t at = place(label);
            const std::byte* const from =
                at < 0 ? otherwise.numbers->data.data()
                       : values.numbers->data.data() + static_cast<std::size_t>(at) * size;
            result->data.insert(result->data.end(), from, from + size);
        }
        return result;
    };
    if (x->strings) return call.set(0, build.constant("", encode(x->spec.shape, labels)));
    const std::vector<Ref> made =
        build.call_host({x}, [encode](const std::vector<HostValue>& inputs) {
            return std::vector<HostValue>{
                encode(inputs[0]->shape, LabelValues{false, {}, inputs[0]}.all())};
        });
    call.supports(!made.empty(), "labels that are computed are not supported in a static network");
    call.set(0, made[0]);
}

/// Elements of the last dimension; a list of them is a row.
void array_feature_extractor(Call& call) {
    Builder& build = call.build;
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 1, "the input is a single number");
    const std::int64_t count = call.shape(1).numel();
    const Ref y =
        gather_computed(call, call.in(0), build.reshape(call.in(1), {count}), x.rank() - 1);
    call.set(0, x.rank() == 1 ? build.reshape(y, {1, count}) : y);
}

void binarizer(Call& call) {
    call.set(0, call.build.pointwise("y0 = x0 > p0", {call.in(0)}, {call.number("threshold", 0)},
                                     call.dtype(0)));
}

}  // namespace

std::vector<Rule> label_rules() {
    return {
        {"ai.onnx.ml.LabelEncoder", 2, label_encoder, Rule::Strings::own},
        {"ai.onnx.ml.ArrayFeatureExtractor", 1, array_feature_extractor, Rule::Strings::moved},
        {"ai.onnx.ml.Binarizer", 1, binarizer},
    };
}

}  // namespace dlprim::onnx
