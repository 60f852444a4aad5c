// SPDX-License-Identifier: MIT
// describe(): what a network is made of, operator by operator, with shapes: for summaries and
// pictures.
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
    /// the network. Names do not tell, since an operator may work on a tensor in place.
    int producer = -1;
};

struct ParamDescription {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    bool trainable = false;
    bool shared = false;  ///< an operator before has it, too: it counts once
};

struct OperatorDescription {
    std::string name, type;
    std::string options;  ///< all of them, defaults too, as one line of JSON
    Precision precision = Precision::fp32;
    bool frozen = false;
    double gflop = 0;  ///< nominal, of forward: 2 per multiply-add of convolutions and products
    std::vector<TensorDescription> inputs;
    /// Outputs that the network leaves unnamed are called "<operator>:<index>".
    std::vector<TensorDescription> outputs;
    std::vector<ParamDescription> params;  ///< in the order of formats: weight, bias
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

/// Describes a network JSON text. Of the options those count that shapes depend on: mode, batch,
/// input_shapes, extra_outputs, precision and precisions. Throws Error as Net::from_json() does for
/// what is wrong with the network.
NetworkDescription describe(std::string_view text, const NetOptions& options = {});
/// The same of a file.
NetworkDescription describe_file(const std::string& path, const NetOptions& options = {});
/// Describes a Net with the shapes that it has now, without planning anything. A call on the Net
/// like any other: for one thread at a time.
NetworkDescription describe(const Net& net);

}  // namespace dlprim
