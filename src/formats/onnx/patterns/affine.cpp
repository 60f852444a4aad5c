// SPDX-License-Identifier: MIT
// Convolutions and products whose columns are scaled and shifted by constants; see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// y = x * scale + shift, in each column; either is one number, one a column, or absent.
struct Affine {
    Ref x = nullptr;
    Ref values = nullptr;  ///< null: `number`
    double number = 0;
    enum class Kind { multiply, divide, add, subtract } kind = Kind::add;

    bool scales() const { return kind == Kind::multiply || kind == Kind::divide; }
};

/// The values as one per column, or empty where they are no such values.
std::vector<double> per_column(const Affine& of, int axis, std::int64_t columns) {
    if (!of.values) return std::vector<double>(static_cast<std::size_t>(columns), of.number);
    const Shape &given = of.values->spec.shape, &x = of.x->spec.shape;
    bool fits = given.rank() <= x.rank();
    for (int k = 1; fits && k <= given.rank(); ++k)
        fits = given[-k] == 1 || (x.rank() - k == axis && given[-k] == columns);
    if (!fits) return {};
    std::vector<double> numbers = to_numbers(*of.values->known);
    if (numbers.size() == 1) numbers.resize(static_cast<std::size_t>(columns), numbers[0]);
    return numbers;
}

HostValue scaled(const HostTensor& weight, const std::vector<double>& scale) {
    auto result = std::make_shared<HostTensor>(weight);
    const std::size_t row = static_cast<std::size_t>(weight.shape.numel()) / scale.size();
    const std::size_t bytes = row * size_of(weight.dtype);
    std::vector<double> numbers(row);
    for (std::size_t i = 0; i < scale.size(); ++i) {
        std::byte* const at = result->data.data() + i * bytes;
        convert(at, weight.dtype, numbers.data(), DType::f64, row);
        for (double& number : numbers) number *= scale[i];
        convert(numbers.data(), DType::f64, at, weight.dtype, row);
    }
    return result;
}

class AffinePattern {
  public:
    explicit AffinePattern(Finder& finder) : finder_(finder) {}

    void run() {
        for (BuiltOperator& op : finder_.operators()) {
            if (finder_.is_dead(op)) continue;
            for (const Affine& of : readings(op))
                if (merge(op, of)) break;
        }
    }

  private:
    /// What the operator may be: a sum has two operands of which either may be constant.
    static std::vector<Affine> readings(const BuiltOperator& op) {
        using Kind = Affine::Kind;
        if (op.inputs.empty()) return {};
        const Ref x = op.inputs[0];
        if (const auto number = scalar_of(op, "y0 = x0 * p0"))
            return {{x, nullptr, *number, Kind::multiply}};
        if (const auto number = scalar_of(op, "y0 = x0 / p0"))
            return {{x, nullptr, *number, Kind::divide}};
        if (const auto number = scalar_of(op, "y0 = x0 + p0"))
            return {{x, nullptr, *number, Kind::add}};
        if (const auto number = scalar_of(op, "y0 = x0 - p0"))
            return {{x, nullptr, *number, Kind::subtract}};
        if (op.inputs.size() != 2) return {};
        const Ref y = op.inputs[1];
        if (is_elementwise(op, "prod"))
            return {{x, y, 0, Kind::multiply}, {y, x, 0, Kind::multiply}};
        if (is_elementwise(op, "sum")) return {{x, y, 0, Kind::add}, {y, x, 0, Kind::add}};
        if (is_code(op, "y0 = x0 / x1")) return {{x, y, 0, Kind::divide}};
        if (is_code(op, "y0 = x0 - x1")) return {{x, y, 0, Kind::subtract}};
        return {};
    }

    bool merge(BuiltOperator& op, const Affine& of) {
        if (of.values && (!of.values->known || of.values->spec.dtype != of.x->spec.dtype))
            return false;
        if (of.x->spec != op.outputs[0]->spec || !is_float(of.x->spec.dtype)) return false;
        BuiltOperator* const view = finder_.sole_maker(of.x);
        if (!view) return false;
        const bool is_view = view->type == "Reshape";
        BuiltOperator* const linear = is_view ? finder_.sole_maker(view->inputs[0]) : view;
        if (!linear || linear->params.empty() || !linear->params[0]->known) return false;
        const bool is_product =
            linear->type == "InnerProduct" && (!of.scales() || !linear->options.has("blocks"));
        const bool is_window = linear->type == "Convolution" ||
                               (linear->type == "TransposedConvolution" && !of.scales());
        if (!is_product && (!is_window || is_view)) return false;
        const Shape& y = of.x->spec.shape;
        const std::int64_t columns = linear->outputs[0]->spec.shape[1];
        const int axis = is_product ? y.rank() - 1 : 1;
        if (axis < 0 || y[axis] != columns || columns == 0) return false;
        const std::vector<double> numbers = per_column(of, axis, columns);
        return !numbers.empty() && apply(op, *view, *linear, of, numbers);
    }

    /// Gives the operator other parameters, and `op` the place of the view or of the operator.
    bool apply(BuiltOperator& op, BuiltOperator& view, BuiltOperator& linear, const Affine& of,
               std::vector<double> numbers) {
        std::vector<Ref> params = linear.params;
        if (!std::all_of(params.begin(), params.end(),
                         [&](Ref param) { return param->known && finder_.uses(param) == 1; }))
            return false;
        if (of.kind == Affine::Kind::divide) {
            if (std::count(numbers.begin(), numbers.end(), 0.0)) return false;
            for (double& number : numbers) number = 1 / number;
        }
        if (of.scales()) {
            for (Ref& param : params)
                param = finder_.replace_known(param, scaled(*param->known, numbers));
        } else if (params.size() == 1 && of.values && of.kind == Affine::Kind::add &&
                   of.values->spec.shape.rank() == 1) {
            params.push_back(of.values);  // as the model has it
        } else {
            shift(linear, params, of, numbers);
        }
        Attrs options = linear.options;
        options.set("bias", params.size() == 2);
        if (&linear == &view) {
            finder_.rewrite(op, linear.type, options, linear.inputs, params);
        } else {
            finder_.rewrite(linear, linear.type, options, linear.inputs, params);
            finder_.rewrite(op, "Reshape", view.options, view.inputs);
        }
        return true;
    }

    void shift(const BuiltOperator& linear, std::vector<Ref>& params, const Affine& of,
               std::vector<double> numbers) {
        const DType dtype = linear.outputs[0]->spec.dtype;
        if (of.kind == Affine::Kind::subtract)
            for (double& number : numbers) number = -number;
        if (params.size() == 2) {
            const std::vector<double> old = to_numbers(*params[1]->known);
            for (std::size_t i = 0; i < old.size(); ++i) numbers[i] += old[i];
        }
        HostValue bias = host_numbers({static_cast<std::int64_t>(numbers.size())}, numbers, dtype);
        if (params.size() == 2)
            params[1] = finder_.replace_known(params[1], std::move(bias));
        else
            params.push_back(finder_.make_known(linear, "bias", std::move(bias)));
    }

    Finder& finder_;
};

}  // namespace

void merge_affine(Finder& finder) {
    AffinePattern(finder).run();
}

}  // namespace dlprim::onnx
