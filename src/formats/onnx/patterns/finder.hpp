// SPDX-License-Identifier: MIT
// Finder: finds operators by the values that they make and read, and rewrites them for patterns.
#pragma once

#include "formats/onnx/patterns/patterns.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dlprim::onnx {

class Finder {
  public:
    Finder(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs,
           const Builder& builder, MadeValues& made);

    std::vector<BuiltOperator>& operators() { return operators_; }
    /// How many operators and outputs read the value. Operators whose results nobody reads any more
    /// do not count.
    int uses(Ref value) const;
    bool is_dead(const BuiltOperator& op) const;

    /// The operator that makes the value; null if none does.
    BuiltOperator* maker(Ref value);
    /// The operator that makes the value; null if the value has no reader or more than one.
    BuiltOperator* sole_maker(Ref value) { return uses(value) == 1 ? maker(value) : nullptr; }
    /// The same; null also if the operator is of another type.
    BuiltOperator* sole_maker(Ref value, std::string_view type);

    /// Replaces the operator by another one with the same outputs.
    void rewrite(BuiltOperator& op, std::string_view type, const Attrs& options,
                 const std::vector<Ref>& inputs, const std::vector<Ref>& params = {});
    /// Replaces the operator's only output, which no operator reads any more, by a value of another
    /// shape.
    Ref replace_output(BuiltOperator& op, const Shape& shape);
    /// Makes a known value that replaces `old` and has its name.
    Ref replace_known(Ref old, HostValue value);
    /// Makes a known value for a parameter of this operator. Its name is the operator's name with
    /// `what` appended.
    Ref make_known(const BuiltOperator& op, std::string_view what, HostValue value);

  private:
    void retain(const BuiltOperator& op);
    void release(const std::vector<Ref>& values);

    std::vector<BuiltOperator>& operators_;
    const Builder& builder_;
    MadeValues& made_;
    std::unordered_map<Ref, int> uses_;
    std::unordered_map<Ref, std::size_t> makers_;
};

// What an operator is.
bool has_text(const BuiltOperator& op, std::string_view option, std::string_view text);
bool boolean_of(const BuiltOperator& op, std::string_view option);
bool is_elementwise(const BuiltOperator& op, std::string_view operation);
bool is_code(const BuiltOperator& op, std::string_view code);
/// p0 where the operator is this expression of tensors and p0.
std::optional<double> scalar_of(const BuiltOperator& op, std::string_view code);
/// Whether the operator is this expression with about this p0: exporters write floats.
bool is_expression(const BuiltOperator& op, std::string_view code, double scalar);
/// The number that all elements of a known float value are.
std::optional<double> uniform(Ref value);

// The families, in files of their names.
void merge_activations(Finder& finder);
void merge_attention(Finder& finder);
void merge_norms(Finder& finder);
void merge_affine(Finder& finder);
void merge_padding(Finder& finder);
void merge_quantization(Finder& finder);

}  // namespace dlprim::onnx
