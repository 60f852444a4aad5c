// SPDX-License-Identifier: MIT
// IDX files (the MNIST family), plain or gzip-compressed.
//
// An IDX file consists of two zero bytes, a type byte, a rank byte, the sizes as big-endian 32-bit
// integers, and the big-endian elements, slowest dimension first. Sizes are checked against the
// file's length before memory is allocated.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

struct IdxArray {
    Shape shape;
    DType dtype = DType::u8;      ///< u8, i8, i16, i32, f32 or f64
    std::vector<std::byte> data;  ///< row-major, host byte order
};

/// Reads a whole file. A file that begins with gzip's two bytes is decompressed, whatever its name.
/// Throws Error: not_found (no such file); io; format (not IDX, cut short, or bytes left over);
/// unsupported (gzip in a build without zlib).
IdxArray read_idx(const std::string& path);

/// Writes a plain IDX file atomically. Throws Error(invalid_argument) on a type that IDX lacks.
void write_idx(const std::string& path, const Shape& shape, DType dtype, const void* data);

}  // namespace dlprim
