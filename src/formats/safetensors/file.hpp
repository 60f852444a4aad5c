// SPDX-License-Identifier: MIT
// SafetensorsFile: tensors in a file of Hugging Face's format safetensors:
//
//   length of the header, 8 bytes, little-endian
//   header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//   data, to which the offsets refer, row-major and little-endian
//
// The file is hostile until it is parsed: the data of the tensors lie one behind the other, fill
// the file, and have the size that type and shape say. Data stay in the file. read() takes them
// from there piece by piece, because a file that somebody cuts short while it is mapped ends the
// process.
#pragma once

#include "base/input_file.hpp"

#include <dlprim/shape.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace dlprim {

struct SafetensorsTensor {
    std::string name, type;  ///< type as the file says it: "F32", "BF16", ...
    Shape shape;
    std::uint64_t position = 0;  ///< of the data in the file
};

class SafetensorsFile {
  public:
    /// Parses the header. Throws Error(not_found), Error(io), or Error(format), which says what is
    /// wrong.
    explicit SafetensorsFile(const std::string& path);

    const std::string& path() const { return file_->path(); }
    const std::map<std::string, SafetensorsTensor>& tensors() const { return tensors_; }

    /// Converts a tensor to floats; `values` has room for shape.numel(). Throws Error(unsupported)
    /// for a type other than F32, F16 and BF16, and Error(io) if the file has changed.
    void read(const SafetensorsTensor& tensor, float* values) const;

  private:
    void check_places(std::uint64_t data) const;

    std::unique_ptr<const InputFile> file_;
    std::map<std::string, SafetensorsTensor> tensors_;
};

}  // namespace dlprim
