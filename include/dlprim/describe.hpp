// SPDX-License-Identifier: MIT
// describe(): the operators of a network with their options, parameters and the shapes of their
// tensors, for summaries and pictures.
//
// No device is opened, nothing is planned and no memory for parameters or tensors is allocated. A
// description is plain data that belongs to the caller. Any thread may call describe() of a text or
// file.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct TensorDescription {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    /// The index in NetworkDescription::operators of the operator that makes it; -1: an input of
    /// the network. A name does not identify the operator, since several may write to one tensor in
    /// place.
    int producer = -1;
};

struct ParamDescription {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    bool trainable = false;
    bool shared = false;  ///< an earlier operator has it, too; counts take it once
};

struct OperatorDescription {
    std::string name, type;
    std::string options;  ///< all of them, with defaults filled in, as one line of JSON
    Precision precision = Precision::fp32;
    bool frozen = false;  ///< whether solvers leave its parameters as they are
    /// Nominal operations of forward, in 10^9: 2 per multiply-add of convolutions and products.
    double gflop = 0;
    std::vector<TensorDescription> inputs;
    /// Outputs that the network leaves unnamed are called "<operator>:<index>".
    std::vector<TensorDescription> outputs;
    std::vector<ParamDescription> params;  ///< in the order of docs/json.md: weight, bias
};

struct NetworkDescription {
    std::vector<TensorDescription> inputs;  ///< in declared order
    /// In an order in which every tensor is made before it is used.
    std::vector<OperatorDescription> operators;
    std::vector<TensorDescription> outputs;
    std::map<std::string, double> losses;  ///< outputs that are losses, and their weights
    std::int64_t params = 0;               ///< elements of all parameters, shared ones once
    std::int64_t trainable_params = 0;     ///< of those that a solver would change
};

/// Describes a network given as JSON text. These options count: mode, batch, input_shapes,
/// extra_outputs, precision and precisions. Throws Error as Net::from_json() does.
NetworkDescription describe(std::string_view text, const NetOptions& options = {});
/// The same for a file. Throws Error as Net::from_json_file() does.
NetworkDescription describe_file(const std::string& path, const NetOptions& options = {});
/// Describes a Net with the shapes that it has now. Plans nothing. As a call on the Net it is for
/// one thread at a time.
NetworkDescription describe(const Net& net);

/// What a message offers for a name that is none of `known`: "; did you mean 'channels_out'?" for
/// "out_channels", or an empty text. Knows misspellings, and the names that PyTorch, Keras, ONNX
/// and Caffe give to options and arguments.
std::string name_hint(std::string_view name, const std::vector<std::string>& known);
/// The operator type that other frameworks call `name`: "InnerProduct" of "Dense". Empty if there
/// is none.
std::string operator_type_of(std::string_view name);

}  // namespace dlprim
