// SPDX-License-Identifier: MIT
// Named host tensors in HDF5 files, such as the inputs and outputs of dlprim_run.
//
// Tensors are plain values in host memory, which belong to the caller. Any thread may call these
// functions. They return when the file is read or written. Threads wait for each other, since HDF5
// serves one at a time.
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
    std::vector<std::byte> data;  ///< shape.numel() elements of size_of(dtype) bytes each
};

/// Returns every dataset of numbers in the file, by name ("group/name"). Throws Error(not_found),
/// Error(format) or Error(io).
std::map<std::string, HostTensor> load_tensors(const std::string& path);
/// Writes the file whole or not at all. Throws Error(io), and Error(invalid_argument) where the
/// size of a tensor's data is not that of its shape and type.
void save_tensors(const std::string& path, const std::map<std::string, HostTensor>& tensors);
/// Writes several files, by path: all of them or none. Throws as above.
void save_tensors(const std::map<std::string, std::map<std::string, HostTensor>>& files);

}  // namespace dlprim
