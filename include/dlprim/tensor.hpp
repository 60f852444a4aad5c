// SPDX-License-Identifier: MIT
// Tensor: a strided view {buffer, byte offset, shape, strides, dtype} on device memory that it
// shares.
//
// Copies of a Tensor share memory; the memory lives as long as a Tensor on it. A Tensor knows
// nothing of gradients. An empty Tensor (default-made) has no memory and no context: what needs
// them throws Error(invalid_argument).
//
// What an eager call (dlprim/ops.hpp) returns may still lie as its engine wrote it, say with
// channels in blocks of 16. Nobody sees that: whoever reaches the memory gets it row-major.
// buffer() and the copies then allocate that memory (from the context's pool) and enqueue one
// conversion, once for all tensors on the memory, without a wait.
//
// Threads: different Tensor objects may be used by different threads at the same time, also where
// they share memory or a context; dlprim/context.hpp says what else may run then. The library does
// not order threads: who reads memory that another thread writes must see to the order itself.
//
// A host pointer that is given with a size over 0 must not be null: that is an
// Error(invalid_argument), and nothing has changed.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/dtype.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dlprim {

class Buffer;
class Deferred;

class Tensor {
  public:
    Tensor() = default;
    /// New memory, row-major, contents undefined. Throws Error(out_of_memory) with what is needed
    /// and what the device offers.
    Tensor(const Context& context, const Shape& shape, DType dtype = DType::f32);
    /// New memory holding a copy of `values` (shape.numel() of them), converted to `dtype`.
    Tensor(const Context& context, const Shape& shape, const std::vector<float>& values,
           DType dtype = DType::f32);
    /// A view on existing memory (what the library and its wrappers use).
    Tensor(Context context, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset, Shape shape,
           DType dtype);
    /// Contents in a layout of an engine's choice; the library's own (src/runtime/deferred.hpp).
    explicit Tensor(std::shared_ptr<Deferred> deferred);

    /// Wraps a cl_mem of the context's own cl_context without a copy; it is retained.
    static Tensor wrap_opencl(const Context& context, void* cl_mem_handle,
                              std::uint64_t byte_offset, const Shape& shape,
                              DType dtype = DType::f32);
    /// Wraps host memory without a copy, for the host context only. It must outlive all tensors on
    /// it, or belong to `owner`, which is let go with the last of them, in whatever thread that is.
    static Tensor wrap_host(const Context& context, void* data, const Shape& shape,
                            DType dtype = DType::f32, std::shared_ptr<void> owner = nullptr);

    bool defined() const noexcept { return buffer_ != nullptr || deferred_ != nullptr; }
    const Context& context() const;
    const Shape& shape() const noexcept { return shape_; }
    const std::vector<std::int64_t>& strides() const noexcept { return strides_; }  ///< in elements
    DType dtype() const noexcept { return dtype_; }
    std::uint64_t byte_offset() const noexcept { return byte_offset_; }
    std::uint64_t bytes() const noexcept;  ///< elements times their size
    bool contiguous() const noexcept;      ///< row-major without gaps
    /// The memory, row-major; may enqueue (see above), and throw Error(out_of_memory) then.
    const std::shared_ptr<Buffer>& buffer() const { return deferred_ ? plain() : buffer_; }
    /// Contents that may lie in another layout; the library's own. nullptr for other tensors.
    const std::shared_ptr<Deferred>& deferred() const noexcept { return deferred_; }

    // Views that share this tensor's memory.
    Tensor reshape(const Shape& shape) const;  ///< same element count; contiguous() tensors only
    Tensor slice(int dim, std::int64_t begin, std::int64_t end) const;
    Tensor transpose(int dim0, int dim1) const;
    /// Any view: element [i, j, ...] is this tensor's element number
    /// `offset` + i * strides[0] + j * strides[1] + ... of its memory, counted from its first one.
    /// Strides are not negative, and the view stays within what this tensor's own elements span;
    /// throws Error(invalid_argument) otherwise.
    Tensor view(const Shape& shape, const std::vector<std::int64_t>& strides,
                std::int64_t offset = 0) const;

    /// This tensor where it is contiguous(), else new row-major memory of its own with a copy of
    /// its elements. What takes no strided views, as eager calls do, takes this. The copy goes
    /// through the host and waits.
    Tensor to_contiguous() const;

    // Copies between host and device; they wait for the queue. The host side is row-major.
    void copy_from_host(const void* data, std::uint64_t bytes);
    void copy_to_host(void* data, std::uint64_t bytes) const;
    /// The first element's address on the host context, for reading and writing elements in place
    /// by strides(); valid while a tensor on the memory lives. The library then counts on nothing
    /// that it derived from these contents before. Throws Error(unsupported) for other devices.
    void* host_data() const;
    void copy_from(const std::vector<float>& values);  ///< converts to dtype()
    std::vector<float> to_floats() const;
    std::vector<double> to_doubles() const;
    void fill(double value);

  private:
    const std::shared_ptr<Buffer>& plain() const;
    /// buffer() for who writes all of this tensor: contents that it covers need no conversion.
    const std::shared_ptr<Buffer>& overwritten() const;

    std::optional<Context> context_;
    std::shared_ptr<Buffer> buffer_;  ///< nullptr where deferred_ is not
    std::shared_ptr<Deferred> deferred_;
    std::uint64_t byte_offset_ = 0;
    Shape shape_;
    std::vector<std::int64_t> strides_;
    DType dtype_ = DType::f32;
};

}  // namespace dlprim
