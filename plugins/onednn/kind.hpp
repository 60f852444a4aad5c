// SPDX-License-Identifier: MIT
// What the engines of oneDNN share: an engine is a Kind, which makes a primitive for a problem, and
// the functions of dlprim/engine_plugin.h are the same for all of them.
#pragma once

#include "support.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

using Dims = dnnl::memory::dims;
using Problem = dlprim_engine_problem;

const dnnl::engine& processor();

/// Options by name; the library gives all that the operator has.
std::vector<std::int64_t> integers(const Problem& problem, const std::string& name);
std::int64_t integer(const Problem& problem, const std::string& name);
double number(const Problem& problem, const std::string& name);
std::string text(const Problem& problem, const std::string& name);

Dims dims_of(const dlprim_engine_operand& operand);
/// Throws Unsupported for types that oneDNN's products lack.
dnnl::memory::data_type type_of(const dlprim_engine_operand& operand);

/// A primitive that computes a problem, and how its operands lie.
struct Made {
    dnnl::primitive primitive;
    struct Argument {
        std::size_t operand;        ///< of the problem: inputs, then outputs
        int number;                 ///< DNNL_ARG_SRC
        dnnl::memory::desc wanted;  ///< by the primitive
        dnnl::memory::desc plain;   ///< row-major, as the primitive sees the operand's dimensions
        bool is_weight = false;     ///< is packed: lies as `wanted` after build_packing()
    };
    std::vector<Argument> arguments;
    dnnl::memory::desc scratchpad;
    /// Of the processor's peak, by estimate.
    double share_of_peak = 1;
};

/// One engine: an operator and how oneDNN computes it.
class Kind {
  public:
    virtual ~Kind() = default;
    /// Throws Unsupported, or dnnl::error where oneDNN lacks the primitive. With `plain`, operands
    /// that are no weights are to lie row-major, and otherwise as is best.
    virtual Made make(const Problem& problem, bool plain) const = 0;
    /// Floating-point operations of the problem.
    virtual double flops(const Problem& problem) const = 0;
};

/// Attributes for the problem's stages, which oneDNN calls post-operations, and a scratchpad of the
/// caller. Adds the arguments of stages to `made`. `result` is how the result lies.
dnnl::primitive_attr attributes_of(const Problem& problem, Made& made,
                                   const dnnl::memory::desc& result);

/// `kind` as an engine with static lifetime. `name` and `op` are constants.
const dlprim_engine* engine_of(const Kind& kind, const char* name, const char* op);

// The engines, by file.
std::vector<const dlprim_engine*> convolutions();
std::vector<const dlprim_engine*> products();
std::vector<const dlprim_engine*> poolings();

}  // namespace onednn
