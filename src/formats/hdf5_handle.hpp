// SPDX-License-Identifier: MIT
// What the HDF5 reader and writer share: owned identifiers, the global lock, and types. Only .cpp
// files of this room may include it, because it includes HDF5's header.
#pragma once

#include "base/text.hpp"

#include <dlprim/dtype.hpp>

#include <hdf5.h>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace dlprim::hdf5 {

/// HDF5 as distributions build it is not thread-safe, so this lock is held during every call.
/// Taking it also turns off the library's printing of errors.
std::unique_lock<std::mutex> lock();

/// An identifier that is closed when it goes out of scope.
class Handle {
  public:
    Handle() = default;
    Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
    ~Handle() { reset(); }
    Handle(Handle&& other) noexcept
        : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&& other) noexcept {
        if (this != &other) {
            reset();
            id_ = std::exchange(other.id_, H5I_INVALID_HID);
            close_ = other.close_;
        }
        return *this;
    }
    explicit operator bool() const { return id_ >= 0; }
    hid_t id() const { return id_; }
    /// Returns false if closing failed. HDF5 may write only when it closes.
    bool reset() {
        const hid_t id = std::exchange(id_, H5I_INVALID_HID);
        return id < 0 || close_(id) >= 0;
    }

  private:
    hid_t id_ = H5I_INVALID_HID;
    herr_t (*close_)(hid_t) = nullptr;
};

/// HDF5's 16-bit IEEE float, little-endian, as h5py writes numpy.float16.
Handle half_type();
/// h5py's boolean: an enumeration FALSE, TRUE over int8.
Handle bool_type();
/// The type in memory of a dtype (bf16: 16-bit unsigned).
Handle memory_type(DType dtype);
/// The type in files: little-endian.
Handle file_type(DType dtype);
/// The dtype that a stored type is read as, or nothing. A 16-bit unsigned type is read as u16. The
/// caller must check the attribute that makes it bfloat16.
std::optional<DType> dtype_of(hid_t type);

/// HDF5's innermost description of the last failure, or empty. Clears it.
std::string last_error();

}  // namespace dlprim::hdf5
