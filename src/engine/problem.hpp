// SPDX-License-Identifier: MIT
// Problem: what a node needs an engine to compute. It is the key of every cache of engines, tunings
// and launches.
#pragma once

#include "base/attrs.hpp"
#include "base/layout.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/shape.hpp>

#include <string>
#include <vector>

namespace dlprim {

enum class Phase : std::uint8_t { inference, training };

/// One input or output of a problem.
struct Operand {
    Shape shape;  ///< logical
    DType dtype = DType::f32;
    Layout layout;          ///< in memory, as chosen by the planner
    bool constant = false;  ///< does not change between runs (weights in inference)
};

/// Operations that fusion appended to an operator. They are applied in order to each output element
/// v:
///   add         v += operand (same shape and layout as the output)
///   activation  v = f(v), by the name and parameters of engine/activations.hpp
struct EpilogueStage {
    enum class Kind : std::uint8_t { add, activation };
    Kind kind = Kind::activation;
    int operand = -1;            ///< add: index into Problem::inputs
    std::string activation;      ///< activation: its name
    double alpha = 0, beta = 0;  ///< the activation's parameters
    bool operator==(const EpilogueStage&) const = default;
};
using Epilogue = std::vector<EpilogueStage>;

struct Problem {
    std::string op;  ///< operator type as registered: "Convolution2D", "Convolution2DBackwardData"
    Phase phase = Phase::inference;
    std::vector<Operand>
        inputs;  ///< the operator's inputs and parameters, then operands of the epilogue
    std::vector<Operand> outputs;
    Attrs attrs;  ///< completed by the operator's Schema
    Epilogue epilogue;
    Precision precision = Precision::fp32;  ///< differs from fp32 only if an engine supports it
    /// Whether a training step calls this operator by itself, so that nothing is known of what
    /// follows it. Engines then prefer to round less.
    bool by_itself = false;

    /// Canonical text. Equal problems have equal keys. fp32 is left out of the text. With
    /// with_layouts false it is the key of database rows, since engines choose layouts themselves,
    /// and leaves by_itself out.
    std::string key(bool with_layouts = true) const;
};

}  // namespace dlprim
