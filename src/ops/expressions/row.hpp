// SPDX-License-Identifier: MIT
// Operators that are an expression of the pointwise language (docs/pointwise.md). Each is a row of
// rows.cpp: its name, operands, options and expression. operator.cpp makes the rest of them: the
// shape rule, the gradient, the Pointwise nodes; oracle.cpp evaluates the expression in double.
#pragma once

#include "graph/operator.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::expressions {

/// What an operator computes, in the names of its operands and of those options that are numbers.
struct Formula {
    std::string value;
    /// The gradient of each operand. It may also name `dy`, the gradient of the result; `y`, the
    /// result, if that has the operands' shape; and, if the row is reduced, `factor`. "0" stands
    /// for no gradient. Where the text is empty or missing, the gradient is dy times the
    /// language's derivative of the value.
    std::vector<std::string> gradients = {};
    /// More names for numbers, beside the options.
    std::vector<std::pair<std::string, double>> numbers = {};
};

/// A parameter of one element, or of one element per channel (dimension 1 of the input).
struct Parameter {
    std::string name;   ///< in expressions
    std::string count;  ///< the option that holds the number of its elements
    std::string init;   ///< the option that holds its first value
};

struct Row {
    std::string_view type;
    const Schema& (*schema)();
    std::vector<std::string> inputs;  ///< the tensors' names; their shapes are broadcast
    std::optional<Parameter> parameter = {};
    Formula (*formula)(const Attrs& attrs);
    FloatTypes float_types = FloatTypes::all;
    bool integers = false;    ///< whether integer tensors are taken, too
    bool same_shape = false;  ///< whether the inputs must have one shape
    bool differentiable = true;
    /// The option `reduce` says what becomes of the values: "mean" or "sum" of shape [1], or
    /// "none". Values are multiplied by `factor`, which is 1 / their number for the mean, and
    /// otherwise 1.
    bool reduced = false;
    /// The option `activation` names a function that is applied to the result.
    bool activated = false;
    /// Throws Error(invalid_argument) on options that do not fit each other.
    void (*check)(const Attrs& attrs) = nullptr;
    /// The options as expressions name them, if users may give them in other ways.
    Attrs (*resolve)(const Attrs& attrs) = nullptr;
    /// See Operator::as_epilogue().
    std::optional<EpilogueStage> (*epilogue)(const Attrs& attrs) = nullptr;

    Attrs resolved(const Attrs& attrs) const {
        return resolve == nullptr ? attrs : schema().complete(resolve(attrs), type);
    }
};

const std::vector<Row>& rows();

}  // namespace dlprim::expressions
