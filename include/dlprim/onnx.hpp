// SPDX-License-Identifier: MIT
// ONNXModel: a model in ONNX's format, as exporters write it, before it becomes a Net.
//
// docs/onnx.md says which operators are read. A program that only wants to run a model calls
// Net::from_onnx_file(). An ONNXModel tells which inputs and outputs a model has, can be loaded
// into several Nets, and can be converted to the library's own files.
//
// Ownership: an ONNXModel holds its weights in host memory and shares them with its copies and with
// the Nets made from it. No call opens a device.
//
// Threads: several threads may call const members at the same time. No other thread may use the
// object during load() and parse().
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

namespace onnx {
struct Model;
}

/// An input or output as the model declares it.
struct ONNXInput {
    std::string name;
    /// The element type by its name in JSON ("float"), or by ONNX's name where the library does not
    /// support it. For values that are no tensors "a sequence" or "an optional".
    std::string dtype;
    std::vector<std::int64_t> dims;  ///< -1: the model leaves this size open
};

class ONNXModel {
  public:
    /// Without a model. Every call but load() and parse() throws Error(invalid_argument).
    ONNXModel() = default;
    /// Calls load().
    explicit ONNXModel(const std::string& path) { load(path); }

    /// Reads a file and the external data in its folder. Throws Error, whose sentence begins with
    /// the path: not_found, io, format (the file is not ONNX, is cut short, or holds data of
    /// another size than its shape), or unsupported (the library was built without ONNX). The
    /// object is then as it was before.
    void load(const std::string& path);

    /// Reads a model from memory; `name` stands for the path in messages. Throws as load() does,
    /// and for a model with external data. The bytes are not used after the call.
    void parse(std::string_view bytes, const std::string& name);

    /// The inputs that a caller has to give values, in the model's order. An input that an
    /// initialiser gives a value is not among them.
    std::vector<ONNXInput> inputs() const;
    std::vector<ONNXInput> outputs() const;
    std::vector<std::string> output_names() const;
    /// The types of the graph's nodes, in their order. A type of another domain than ONNX's own has
    /// the domain in front: "Relu", "custom.Swish".
    std::vector<std::string> node_types() const;
    /// The version of ONNX's own operator set; 0 where the model names none.
    std::int64_t opset() const;
    /// The newest version of ONNX's own operator set that the library reads.
    static std::int64_t newest_opset();

    /// The same model with these inputs fixed at values, such as sizes or axes that operators need
    /// before the network runs. They are no longer inputs. Throws Error(not_found) for a name that
    /// is no input, and Error(invalid_argument) for a value of another type or shape than declared.
    ONNXModel fixed(const std::map<std::string, HostTensor>& values) const;

    /// Writes the network as JSON and its weights as HDF5, each file whole or not at all. The paths
    /// must differ. NetOptions::batch and input_shapes give sizes that the model leaves open.
    /// Throws Error as Net::from_onnx_file() does, and Error(io).
    void convert(const std::string& net_path, const std::string& weights_path,
                 const NetOptions& options = {}) const;

  private:
    friend class internal::Access;
    const onnx::Model& impl() const;

    std::shared_ptr<const onnx::Model> impl_;
};

}  // namespace dlprim
