// SPDX-License-Identifier: MIT
// Named host tensors in HDF5 files: what dlprim_run reads and writes.
//
// Tensors are plain values in host memory, which belong to the caller. Any thread may call these
// functions. They return when the file is read or written, and take turns, since HDF5 serves one
// thread at a time.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// A tensor in host memory, row-major.
struct HostTensor {
    Shape shape;
    DType dtype = DType::f32;
    std::vector<std::byte> data;
};

/// Every dataset of numbers in the file, by name ("group/name"). Throws Error: not_found, format,
/// io.
std::map<std::string, HostTensor> load_tensors(const std::string& path);
/// Writes the file whole or not at all. Throws Error(io); Error(invalid_argument) where a tensor's
/// data has not as many bytes as its shape and type want.
void save_tensors(const std::string& path, const std::map<std::string, HostTensor>& tensors);
/// Writes several files, by path: all of them or none.
void save_tensors(const std::map<std::string, std::map<std::string, HostTensor>>& files);

}  // namespace dlprim
