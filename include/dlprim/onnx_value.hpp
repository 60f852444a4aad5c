// SPDX-License-Identifier: MIT
// ONNXValue: what an ONNX model takes or gives, in host memory: a tensor, a tensor of strings, a
// sequence, or an optional.
//
// Ownership: copies of an ONNXValue share what it holds, which nothing changes. Any thread may call
// these functions. Nothing here opens a device.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>
#include <dlprim/tensor_file.hpp>

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

/// What a model takes and gives: a tensor, a tensor of strings, a sequence of values, or nothing
/// (an optional without an element). An optional with an element is that element.
class ONNXValue {
  public:
    enum class Kind { none, tensor, strings, sequence };
    using Sequence = std::vector<ONNXValue>;

    ONNXValue() = default;  ///< none
    /// Throws Error(invalid_argument) where the data has not as many bytes, or the strings are not
    /// as many, as the shape says.
    ONNXValue(HostTensor tensor);
    ONNXValue(std::shared_ptr<const HostTensor> tensor);
    ONNXValue(ONNXStrings strings);
    ONNXValue(Sequence sequence);

    Kind kind() const noexcept { return kind_; }
    // Throw Error(invalid_argument), which says what the value is, where it is of another kind.
    const HostTensor& tensor() const;
    const std::shared_ptr<const HostTensor>& shared_tensor() const;
    const ONNXStrings& strings() const;
    const Sequence& sequence() const;
    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "none".
    std::string str() const;

  private:
    Kind kind_ = Kind::none;
    std::shared_ptr<const HostTensor> tensor_;
    std::shared_ptr<const ONNXStrings> strings_;
    std::shared_ptr<const Sequence> sequence_;
};

/// Reads a value from a file that holds a TensorProto, a SequenceProto or an OptionalProto, as in
/// ONNX's test data. `kind` is what the model declares the value to be, in the words of
/// ONNXInput::dtype: it begins with "a sequence" or "an optional", and is that of a tensor
/// otherwise. Throws Error, one
/// sentence that begins with the path: not_found, io; format (no such message, or data of another
/// size than its shape); unsupported (a type that the library does not have, or a build without
/// ONNX).
ONNXValue read_onnx_value(const std::string& path, std::string_view kind);

}  // namespace dlprim
