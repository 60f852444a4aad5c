// SPDX-License-Identifier: MIT
// See arguments.hpp.
#include "ops/arguments.hpp"

#include "memory/view.hpp"

#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace dlprim_torch {
namespace {

bool is_none(const c10::IValue* value) {
    return value == nullptr || value->isNone() ||
           (value->isTensor() && !value->toTensor().defined());
}

double number_in(std::string_view text) {
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = code == std::errc() && end == text.data() + text.size();
    return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

bool holds(const Condition& condition, const Arguments& arguments, at::ScalarType common) {
    const std::string_view value = condition.value;
    if (std::string_view(condition.argument) == "common") {
        if (value == "bool") return common == at::kBool;
        if (value == "integral") return at::isIntegralType(common, false);
        if (value == "double") return common == at::kDouble;
        if (value == "half") return at::isReducedFloatingType(common);
        return at::isFloatingType(common);
    }
    const c10::IValue* const given = arguments.find(condition.argument);
    if (value == "none") return is_none(given);
    if (is_none(given)) return false;
    if (value == "some") return true;
    if (value == "tensor") return given->isTensor() && !given->toTensor().is_cpu();
    if (given->isBool()) return given->toBool() == (value == "true");
    if (given->isScalar()) return given->toScalar().to<double>() == number_in(value);
    return given->isString() && given->toStringRef() == value;
}

const Variant& variant_of(const Row& row, const Arguments& arguments, at::ScalarType common) {
    for (const Variant& variant : row.variants)
        if (std::all_of(variant.conditions.begin(), variant.conditions.end(),
                        [&](const Condition& c) { return holds(c, arguments, common); }))
            return variant;
    TORCH_CHECK_NOT_IMPLEMENTED(false, "The device \"ocl\" has no expression for ",
                                arguments.name(), " of ", common,
                                " with these arguments; .cpu() computes it on the CPU.");
}

/// Writes a program's text and collects its operands.
class Writer {
  public:
    Writer(const Row& row, const Arguments& arguments, const Circumstances& of)
        : row_(row), arguments_(arguments), of_(of) {}

    Program take(std::span<const Piece> pieces) {
        for (const Piece& piece : pieces) {
            program_.code += piece.text;
            if (piece.argument != nullptr) program_.code += text_of(piece.argument);
        }
        return std::move(program_);
    }

  private:
    std::string text_of(std::string_view name) {
        if (name == "[dim]") return of_.axes;
        if (name.front() == '[') return special(name);
        if (name == "result") return tensor(of_.result);
        const c10::IValue* const value = arguments_.find(name);
        TORCH_INTERNAL_ASSERT(value != nullptr,
                              "an expression names an argument that is not there");
        if (is_none(value)) return without(name);
        if (value->isTensor()) return tensor(value->toTensor());
        if (value->isBool()) return scalar(static_cast<std::int64_t>(value->toBool()));
        return scalar(value->toScalar());
    }

    std::string special(std::string_view name) {
        if (name == "[numel]") return number(static_cast<double>(of_.numel));
        double limit = 0;
        AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, of_.common, "limits", [&] {
            limit = name == "[largest]"
                        ? static_cast<double>(std::numeric_limits<scalar_t>::max())
                        : static_cast<double>(std::numeric_limits<scalar_t>::lowest());
        });
        return number(limit);
    }

    std::string without(std::string_view name) {
        for (const Default& value : row_.defaults) {
            if (value.argument != name) continue;
            return *value.value == '[' ? special(value.value) : number(number_in(value.value));
        }
        TORCH_INTERNAL_ASSERT(false, "an expression needs an argument that is None");
    }

    std::string tensor(const at::Tensor& tensor) {
        if (tensor.is_cpu() && tensor.dim() == 0) return scalar(tensor.item());
        auto& inputs = program_.inputs;
        std::size_t at = 0;
        while (at < inputs.size() && !inputs[at].is_same(tensor)) ++at;
        if (at == inputs.size()) inputs.push_back(tensor);
        return named('x', at);
    }

    /// Beside floats every number is one, so that kernels for 1 and for 1.0 are the same.
    std::string scalar(const c10::Scalar& value) {
        if (value.isFloatingPoint() || at::isFloatingType(of_.common))
            return number(value.to<double>());
        return number(value.to<std::int64_t>());
    }

    std::string number(dp::Scalar value) {
        program_.scalars.push_back(value);
        return named('p', program_.scalars.size() - 1);
    }

    static std::string named(char kind, std::size_t number) {
        std::string name(1, kind);
        return name += std::to_string(number);
    }

    const Row& row_;
    const Arguments& arguments_;
    const Circumstances& of_;
    Program program_;
};

}  // namespace

Arguments::Arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack)
    : schema_(op.schema()), stack_(stack) {
    const auto& all = schema_.arguments();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const c10::IValue& value = stack[stack.size() - all.size() + i];
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        const bool written = all[i].alias_info() != nullptr && all[i].alias_info()->isWrite();
        if (written) outs_.push_back(value.toTensor());
        if (!written || !all[i].is_out()) inputs_.push_back(value.toTensor());
    }
}

const c10::IValue* Arguments::find(std::string_view name) const {
    const auto& all = schema_.arguments();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name() == name) return &stack_[stack_.size() - all.size() + i];
    return nullptr;
}

std::string_view Arguments::name() const {
    const std::string_view whole = schema_.name();
    return whole.substr(whole.rfind(':') + 1);
}

void Arguments::give_back(std::vector<at::Tensor> results) {
    torch::jit::drop(stack_, schema_.arguments().size());
    results.resize(returns());
    for (at::Tensor& result : results) stack_.emplace_back(std::move(result));
}

at::ScalarType common_type(const Row& row, const Arguments& arguments) {
    if (row.types == Types::same) return arguments.inputs().front().scalar_type();
    at::native::ResultTypeState state = {};
    if (row.meet.empty())
        for (const at::Tensor& input : arguments.inputs())
            state = at::native::update_result_type_state(input, state);
    for (const char* const name : row.meet) {
        const c10::IValue* const value = arguments.find(name);
        if (is_none(value)) continue;
        state = value->isTensor() ? at::native::update_result_type_state(value->toTensor(), state)
                                  : at::native::update_result_type_state(value->toScalar(), state);
    }
    const at::ScalarType type = at::native::result_type(state);
    const bool integral = at::isIntegralType(type, true);
    TORCH_CHECK_NOT_IMPLEMENTED(row.types != (integral ? Types::real : Types::whole), "\"",
                                arguments.name(), "\" not implemented for '", type, "'");
    const bool divides = row.types == Types::quotient && is_none(arguments.find("rounding_mode"));
    if ((row.types == Types::floating || divides) && integral)
        return at::typeMetaToScalarType(at::get_default_dtype());
    TORCH_CHECK_NOT_IMPLEMENTED(has_dtype(type), "The device \"ocl\" does not compute with ", type,
                                ", which ", arguments.name(), " would give.");
    return type;
}

Program program_of(const Row& row, const Arguments& arguments, const Circumstances& of) {
    const Variant& variant = variant_of(row, arguments, of.common);
    Program program = Writer(row, arguments, of).take(of.second ? variant.after : variant.pieces);
    program.goes_on = !of.second && !variant.after.empty();
    return program;
}

Dims reduced_dims(const Arguments& arguments, std::int64_t rank) {
    std::vector<std::int64_t> dims;
    if (const c10::IValue* const given = arguments.find("dim"); given != nullptr) {
        if (given->isInt()) dims = {given->toInt()};
        if (given->isIntList()) dims = given->toIntVector();
    }
    return dims_of(dims, rank);
}

bool serves(const Arguments& arguments) {
    const auto all_fit = [](const std::vector<at::Tensor>& tensors) {
        return std::all_of(tensors.begin(), tensors.end(),
                           [](const at::Tensor& tensor) { return serves(tensor); });
    };
    return all_fit(arguments.inputs()) && all_fit(arguments.outs());
}

std::optional<c10::Device> device_of(const Arguments& arguments) {
    for (const at::Tensor& input : arguments.inputs())
        if (!input.is_cpu()) return input.device();
    return std::nullopt;
}

}  // namespace dlprim_torch
