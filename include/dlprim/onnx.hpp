// SPDX-License-Identifier: MIT
// ONNXModel: a model in ONNX's format, as exporters write it, before it becomes a Net.
//
// docs/onnx.md says which operators are read. A program that only wants to run a model calls
// Net::from_onnx_file(). An ONNXModel answers what the model takes and makes, serves several Nets,
// and is converted to the library's own files.
//
// Ownership: an ONNXModel holds its weights in host memory and shares them with its copies and with
// the Nets made from it. Threads: any thread may call const members; load() needs the object alone.
// Nothing here opens a device.
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
    /// As JSON calls it, ONNX's name of a type not supported, "a sequence" or "an optional".
    std::string dtype;
    std::vector<std::int64_t> dims;  ///< -1: left open
};

class ONNXModel {
  public:
    ONNXModel() = default;  ///< without a model: every call but load() and parse() throws
    explicit ONNXModel(const std::string& path) { load(path); }

    /// Reads a file and the external data in its folder. Throws Error, one sentence that begins
    /// with the path: not_found, io; format (not ONNX, cut short, data of another size than its
    /// shape); unsupported where the library was built without ONNX. The object is then as it was
    /// before.
    void load(const std::string& path);

    /// Reads a model from memory; `name` stands for the path in messages. External data is refused.
    /// Throws as load() does.
    void parse(std::string_view bytes, const std::string& name);

    /// What a caller has to feed, in the model's order; initialisers are not among it.
    std::vector<ONNXInput> inputs() const;
    std::vector<ONNXInput> outputs() const;
    std::vector<std::string> output_names() const;
    /// The types of the graph's nodes, in their order, with their domain where it is not ONNX's
    /// own: "Relu", "custom.Swish".
    std::vector<std::string> node_types() const;
    /// The version of ONNX's own operator set; 0 where the model names none.
    std::int64_t opset() const;
    /// The newest version of ONNX's own operator set that the library reads.
    static std::int64_t newest_opset();

    /// The same model with these inputs fixed at values, such as sizes or axes that operators need
    /// before the network runs. They are then no inputs any more. Throws Error: not_found for a
    /// name that is no input, invalid_argument for a value of another type.
    ONNXModel fixed(const std::map<std::string, HostTensor>& values) const;

    /// Writes the network as JSON and its weights as HDF5, each file whole or not at all. The paths
    /// must differ. NetOptions::batch and input_shapes give sizes that the model leaves open.
    /// Throws Error for what Net::from_onnx_file() refuses, and Error(io).
    void convert(const std::string& net_path, const std::string& weights_path,
                 const NetOptions& options = {}) const;

  private:
    friend class internal::Access;
    const onnx::Model& impl() const;

    std::shared_ptr<const onnx::Model> impl_;
};

}  // namespace dlprim
