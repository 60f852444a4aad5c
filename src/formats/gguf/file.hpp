// SPDX-License-Identifier: MIT
// GgufFile: a model in a GGUF file, which is metadata (the model's sizes, its tokenizer) and
// tensors. Versions 2 and 3 are read, little-endian:
//
//   "GGUF" | version | number of tensors | number of keys
//   keys:     name | type | value
//   tensors:  name | sizes, the last dimension first | type | offset of the data
//   padding to the alignment (key general.alignment, else 32) | data
//
// The file is hostile until it is parsed: sizes are checked against the file's before memory is
// allocated, and the data of every tensor lies within the file. Data stay in the file. read() takes
// them from there piece by piece, because a file that somebody cuts short while it is mapped ends
// the process.
#pragma once

#include "base/blocks.hpp"
#include "base/input_file.hpp"

#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace dlprim {

/// Integers of all sizes and signs are int64; one that does not fit is an error of the file. Lists
/// of bytes are written alone; those of a file are lists of integers.
using GgufValue =
    std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>, std::vector<std::uint8_t>>;

struct GgufTensor {
    std::string name;
    Shape shape;  ///< row-major: the reverse of what the file says
    std::uint32_t type = 0;
    std::uint64_t position = 0;  ///< of the data in the file
};

class GgufFile {
  public:
    /// Parses everything but the tensors' data. Throws Error(not_found), Error(io), or
    /// Error(format), which says what is wrong.
    explicit GgufFile(const std::string& path);

    const std::string& path() const { return file_->path(); }
    const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }
    bool has(const std::string& key) const { return metadata_.count(key) > 0; }

    /// The value of a key. T is one of GgufValue's types; double also takes integers. Throws
    /// Error(format), which names the file and the key, if there is none or it has another type.
    template <typename T>
    T value(const std::string& key) const;
    /// The same, or `otherwise` where the key is not there.
    template <typename T>
    T value_or(const std::string& key, T otherwise) const {
        return has(key) ? value<T>(key) : otherwise;
    }

    /// Unpacks a tensor to floats; `values` has room for shape.numel(). Throws Error(unsupported)
    /// for a type that cannot be unpacked (find_gguf_type()), which names those that can, and
    /// Error(io) if the file has changed.
    void read(const GgufTensor& tensor, float* values) const;
    /// Reads `bytes` of a tensor's data as they are stored. Throws Error(io) if the file has
    /// changed.
    void read_stored(const GgufTensor& tensor, std::byte* data, std::size_t bytes) const {
        read_at(tensor.position, data, bytes);
    }

  private:
    void read_at(std::uint64_t position, std::byte* data, std::size_t bytes) const;

    std::unique_ptr<const InputFile> file_;
    std::map<std::string, GgufValue> metadata_;
    std::map<std::string, GgufTensor> tensors_;
};

}  // namespace dlprim
