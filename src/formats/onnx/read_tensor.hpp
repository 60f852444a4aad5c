// SPDX-License-Identifier: MIT
// TensorProto to values, those in external files included. Only the files read_*.cpp see protobuf's
// classes.
#pragma once

#include "formats/onnx/model.hpp"
#include "formats/onnx/types.hpp"

#include "onnx.pb.h"

#include <memory>
#include <optional>
#include <string>

namespace dlprim::onnx {

namespace proto = dlprim::onnx_proto;

class TensorReader {
  public:
    /// External data lies in the folder of the file at `path`, or is refused where that is empty.
    /// `source` is for messages.
    TensorReader(std::string source, std::string path)
        : source_(std::move(source)), path_(std::move(path)) {}
    /// Takes the values out of the message. Throws Error(format, not_found, io), which names the
    /// tensor; for a type that the library does not have, the tensor says so itself.
    Tensor read(proto::TensorProto& tensor) const;

  private:
    std::vector<std::byte> external_bytes(const proto::TensorProto& tensor,
                                          std::size_t bytes) const;
    std::string external_path(const std::string& location, const std::string& tensor) const;

    std::string source_, path_;
};

}  // namespace dlprim::onnx
