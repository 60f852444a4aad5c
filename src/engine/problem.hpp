// SPDX-License-Identifier: MIT
// Problem: what a node asks of an engine, and the key of every cache of engines, tunings and
// launches.
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
    Layout layout;          ///< as stored; what the planner settled on
    bool constant = false;  ///< does not change between runs (weights in inference)
};

/// What fusion attached behind an operator, applied in order to each output element v:
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
        inputs;  ///< the operator's inputs and parameters, then the epilogue's operands
    std::vector<Operand> outputs;
    Attrs attrs;  ///< completed by the operator's Schema
    Epilogue epilogue;
    bool deterministic = true;
    Precision precision = Precision::fp32;  ///< another only where an engine makes use of it

    /// Canonical text; equal problems have equal keys; fp32 goes without saying. with_layouts
    /// false: what a database row is keyed by (the engine settles layouts).
    std::string key(bool with_layouts = true) const;
};

}  // namespace dlprim
