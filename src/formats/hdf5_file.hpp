// SPDX-License-Identifier: MIT
// HDF5 files. Reading checks every size. Writing is atomic: a reader sees either the old file or
// the whole new one. The same contents always give the same bytes.
//
// Input files are not trusted, and only values in the file itself are read. Soft links and links to
// other files are not followed. Virtual datasets, datasets whose values are in other files, and
// datasets with filters that HDF5 would load from a plugin are refused. Names have at most 512
// parts ("a/b" has two) and 4096 bytes.
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
    /// Reads the file that is already open, even if its path names another file by now.
    explicit Hdf5Reader(std::shared_ptr<const InputFile> file);
    ~Hdf5Reader();
    Hdf5Reader(Hdf5Reader&&) noexcept;
    Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

    const std::string& path() const;

    /// All datasets of numbers in all groups, sorted by name. Datasets of other kinds (strings,
    /// compounds) and of more than Shape::max_rank dimensions are left out. Datasets that info()
    /// refuses are included without their shape.
    const std::vector<Hdf5Dataset>& datasets() const;
    /// True also for a link that is not followed; info() refuses it.
    bool has(const std::string& name) const;
    /// Throws Error: not_found, with the nearest name; unsupported if the values are not stored
    /// directly in this file (links, virtual datasets, external storage, filters of plugins).
    const Hdf5Dataset& info(const std::string& name) const;
    /// Throws Error(format) if the file is too short to hold all of its datasets.
    void check_total() const;

    /// Returns the elements in their stored type and in host byte order. Throws what info() throws,
    /// Error(format) if the file cannot hold them, and Error(io) if the file was written to in the
    /// meantime.
    std::vector<std::byte> read(const std::string& name) const;
    /// Reads the elements converted to `dtype` (dlprim::convert). `bytes` must be the size of the
    /// result.
    void read(const std::string& name, DType dtype, void* data, std::uint64_t bytes) const;

    /// Reads rows [first, first + count) of the first dimension in the stored type. The dataset
    /// stays open for the next call, with HDF5's cache of chunks. Throws as read() does, and
    /// Error(invalid_argument) for rows that are not there.
    void read_rows(const std::string& name, std::int64_t first, std::int64_t count,
                   void* data) const;

    /// The offset in the file at which the elements lie contiguously as they would in memory, or
    /// nothing if they are compressed, in chunks, of another byte order, or not written.
    std::optional<std::uint64_t> position(const std::string& name) const;

    /// An attribute of a group or dataset ("" is the root) if it is a string, an integer or a
    /// number, or nothing. Lists of integers and of numbers are returned as Ints and Doubles.
    std::optional<Attr> attribute(const std::string& object, const std::string& name) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Writes to a temporary file next to `path`, which commit() renames to `path`. Without commit() no
/// file is left. Every call throws Error(io), which names the file, if it cannot be written, for
/// example when the disk is full.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(const std::string& path);
    ~Hdf5Writer();
    Hdf5Writer(Hdf5Writer&&) noexcept;
    Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

    /// Adds a dataset; `data` holds shape.numel() elements. Throws Error(invalid_argument) on a
    /// name that is taken, empty, or has an empty part ("a//b").
    void write(const std::string& name, const Shape& shape, DType dtype, const void* data);
    /// Sets an attribute of a dataset that is already written, or of a group, which is created if
    /// necessary ("" is the root).
    void attribute(const std::string& object, const std::string& name, const Attr& value);
    /// Closes the file, syncs it to disk, renames it to `path` and syncs the folder, so that the
    /// new file survives a power failure from then on. No other call may follow.
    void commit();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
