// SPDX-License-Identifier: MIT
// Memory: what a storage of "ocl" holds: a range of addresses that nobody may touch, and a tensor
// of dlprim in which the elements lie.
//
// The tensor is made when somebody first asks for it. So a storage that an operator fills as a
// whole never has memory of its own: the operator's result is hung on it, in whatever layout its
// engine wrote, and stays there until somebody looks through a view of another shape
// (dlprim/tensor.hpp).
//
// Threads: PyTorch's rules: who reads a tensor that another thread writes must order the two. Two
// threads may read the same storage at the same time.
#pragma once

#include "common.hpp"

#include <c10/core/Storage.h>

#include <mutex>

namespace dlprim_torch {

class Memory {
  public:
    Memory(int device, std::size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// The memory of a storage. Throws where the storage is of another device, and where it begins
    /// within memory of another one (as at::from_blob makes them): see locate().
    static Memory& of(const c10::Storage& storage);
    struct Place;
    /// The memory in which a storage lies, and where it begins there.
    static Place locate(const c10::Storage& storage);
    static c10::DataPtr make(int device, std::size_t bytes);

    int device() const noexcept { return device_; }
    std::size_t bytes() const noexcept { return bytes_; }
    void* address() const noexcept { return address_; }

    /// Whether nothing has been written so far.
    bool fresh() const;
    /// Elements by sizes and strides from element `offset` on. All lie within the storage.
    dp::Tensor view(dp::DType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                    std::int64_t offset);
    /// Makes `whole` the contents, which it must cover as row-major elements from the first on.
    void hang(dp::Tensor whole);

  private:
    /// The contents as elements of that type, in one dimension if they have to be made for it.
    dp::Tensor typed(dp::DType dtype);

    const int device_;
    const std::size_t bytes_;
    void* const address_;
    mutable std::mutex mutex_;
    dp::Tensor contents_;
};

struct Memory::Place {
    Memory& memory;
    std::size_t byte_offset;
};

/// An address as a number, by which blocks of memory are ordered.
inline std::uintptr_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

/// The device of an address within a storage. Throws for any other address.
c10::Device device_of_address(void* address);
/// Gives the storage `bytes` bytes, keeping the contents that fit.
void resize_storage(const c10::Storage& storage, std::size_t bytes);

}  // namespace dlprim_torch
