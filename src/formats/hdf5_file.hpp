// SPDX-License-Identifier: MIT
// HDF5 files: read with every size checked, written so that a reader sees the old file or the whole
// new one, and the same bytes whenever the same is written.
//
// A file is read as if it were hostile. Only what stands in it is read: links to other files and
// soft links are not followed, datasets that are virtual or keep their values in other files are
// refused, as are those that need a filter that HDF5 would load from a plugin. Names have at most
// 512 parts ("a/b" has two) and 4096 bytes.
//
// Datasets are named by their path without the leading slash ("layer1/conv.0"); a slash makes
// groups. Element types: all of DType; float16 is HDF5's 16-bit IEEE float (h5py's), bfloat16 is
// uint16 with the attribute dtype = "bfloat16", boolean is h5py's enumeration. A scalar may have
// shape [] or [1]. HDF5 itself is called under one global mutex: objects may be used from several
// threads, each object from one at a time.
#pragma once

#include "base/attrs.hpp"
#include "base/input_file.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

struct Hdf5Dataset {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    std::uint64_t bytes() const {
        return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
    }
};

class Hdf5Reader {
  public:
    /// Throws Error: not_found (no such file), format (not HDF5, cut short, damaged), io.
    explicit Hdf5Reader(const std::string& path);
    /// The file that was opened, whatever stands at its path by now.
    explicit Hdf5Reader(std::shared_ptr<const InputFile> file);
    ~Hdf5Reader();
    Hdf5Reader(Hdf5Reader&&) noexcept;
    Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

    const std::string& path() const;

    /// All datasets of numbers, groups walked recursively, sorted by name. Datasets of other kinds
    /// (strings, compounds) and of more than Shape::max_rank dimensions are left out. Those that
    /// info() refuses are in it, without their shape.
    const std::vector<Hdf5Dataset>& datasets() const;
    /// Also for a link that is not followed, which info() refuses.
    bool has(const std::string& name) const;
    /// Throws Error: not_found, offering the nearest name; unsupported where the values are not
    /// plainly in this file (links, virtual datasets, external storage, filters of plugins).
    const Hdf5Dataset& info(const std::string& name) const;
    /// Throws Error(format) where all datasets together cannot be in a file so long.
    void check_total() const;

    /// The elements in their stored type, host byte order. Throws as info(); Error(format) where
    /// the file cannot hold them, Error(io) where it was written to meanwhile.
    std::vector<std::byte> read(const std::string& name) const;
    /// The elements converted to `dtype` (dlprim::convert); `bytes` must be the size that takes.
    void read(const std::string& name, DType dtype, void* data, std::uint64_t bytes) const;

    /// Where in the file the elements stand one after the other as they would in memory; nothing
    /// where they are compressed, in chunks, of another byte order, or not written.
    std::optional<std::uint64_t> position(const std::string& name) const;

    /// A string, integer or number attribute of a group or dataset ("" is the root), or nothing.
    /// Lists of integers and of numbers come as Ints and Doubles.
    std::optional<Attr> attribute(const std::string& object, const std::string& name) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Writes to a temporary beside `path`; commit() puts it in place. Without commit() nothing is
/// left. Every call throws Error(io) naming the file when it cannot be written, e.g. on a full
/// disk.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(const std::string& path);
    ~Hdf5Writer();
    Hdf5Writer(Hdf5Writer&&) noexcept;
    Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

    /// Adds a dataset; `data` holds shape.numel() elements. Throws Error(invalid_argument) on a
    /// name that is taken, empty, or has an empty part ("a//b").
    void write(const std::string& name, const Shape& shape, DType dtype, const void* data);
    /// Sets an attribute of a dataset already written, or of a group, made if need be ("" is the
    /// root).
    void attribute(const std::string& object, const std::string& name, const Attr& value);
    /// Closes, syncs to disk and renames over `path`. Nothing else may be called after it.
    void commit();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
