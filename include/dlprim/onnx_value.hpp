// SPDX-License-Identifier: MIT
// ONNXValue: an input or output of an ONNX model in host memory: a tensor, a tensor of strings, a
// sequence, a sequence of maps, or an optional.
//
// Ownership: an ONNXValue never changes its contents, and copies of it share them. Any thread may
// call these functions. No call opens a device.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// A tensor of strings (bytes, as a rule UTF-8), row-major.
struct ONNXStrings {
    Shape shape;
    std::vector<std::string> values;
};

/// A sequence of maps that have the same keys, as ZipMap of ai.onnx.ml makes it of rows of scores.
struct ONNXMaps {
    std::vector<std::string> texts;     ///< the keys where they are strings
    std::vector<std::int64_t> numbers;  ///< the keys where they are integers
    HostTensor values;                  ///< float [maps, keys]
};

/// A tensor, a tensor of strings, a sequence of values, a sequence of maps (only as an output), or
/// none (an optional without an element). An optional with an element is represented by that
/// element.
class ONNXValue {
  public:
    enum class Kind { none, tensor, strings, sequence, maps };
    using Sequence = std::vector<ONNXValue>;

    ONNXValue() = default;  ///< none
    /// The constructors throw Error(invalid_argument) where the number of bytes, strings or keys is
    /// not the shape's.
    ONNXValue(HostTensor tensor);
    ONNXValue(std::shared_ptr<const HostTensor> tensor);
    ONNXValue(ONNXStrings strings);
    ONNXValue(Sequence sequence);
    ONNXValue(ONNXMaps maps);

    Kind kind() const noexcept { return kind_; }
    // These throw Error(invalid_argument), which says what the value is, where it is of another
    // kind. References are valid as long as this object or a copy of it.
    const HostTensor& tensor() const;
    const std::shared_ptr<const HostTensor>& shared_tensor() const;
    const ONNXStrings& strings() const;
    const Sequence& sequence() const;
    const ONNXMaps& maps() const;
    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "a sequence of 2 maps",
    /// "none".
    std::string str() const;

  private:
    Kind kind_ = Kind::none;
    std::shared_ptr<const HostTensor> tensor_;
    std::shared_ptr<const ONNXStrings> strings_;
    std::shared_ptr<const Sequence> sequence_;
    std::shared_ptr<const ONNXMaps> maps_;
};

/// Reads a value from a file that holds a TensorProto, a SequenceProto or an OptionalProto, as in
/// ONNX's test data. `kind` says which of the three; it is the ONNXInput::dtype of the value in its
/// model: a sequence if it begins with "a sequence", an optional if it begins with "an optional",
/// and else a tensor. Throws Error, whose sentence begins with the path: not_found, io, format (the
/// file holds no such message, or data of another size than its shape), or unsupported (a type that
/// the library does not have, or a build without ONNX).
ONNXValue read_onnx_value(const std::string& path, std::string_view kind);

}  // namespace dlprim
