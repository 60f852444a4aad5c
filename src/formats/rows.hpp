// SPDX-License-Identifier: MIT
// Rows: an array in a file of which single rows (its slices along the first dimension) are read,
// so that files larger than memory serve as data sets.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace dlprim {

/// All functions may be called by several threads at a time.
class Rows {
  public:
    Rows() = default;
    virtual ~Rows() = default;
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;

    /// The shape of the whole array, of at least one dimension.
    virtual const Shape& shape() const = 0;
    virtual DType dtype() const = 0;
    /// Reads `count` rows from `first` on, in the array's own type. Throws Error, which names the
    /// file.
    virtual void read(std::int64_t first, std::int64_t count, void* data) const = 0;
    /// The file, and within it the array.
    virtual const std::string& name() const = 0;

    std::int64_t count() const { return shape()[0]; }
    /// Elements and bytes of a row.
    std::int64_t row_size() const { return shape().product(1, shape().rank()); }
    std::size_t row_bytes() const {
        return static_cast<std::size_t>(row_size()) * size_of(dtype());
    }
};

/// An IDX file, which is read whole.
std::unique_ptr<Rows> open_idx_rows(const std::string& path);
/// A dataset of an HDF5 file.
std::unique_ptr<Rows> open_hdf5_rows(const std::string& path, const std::string& name);
/// A .npy file, or an array of a .npz file by its name (without ".npy"). A compressed one is read
/// whole. Throws Error(unsupported) for arrays in Fortran's order, of big-endian numbers and of
/// types without numbers.
std::unique_ptr<Rows> open_npy_rows(const std::string& path, const std::string& name);

}  // namespace dlprim
