// SPDX-License-Identifier: MIT
// Tensor: a strided view on device memory: byte offset, shape, strides and dtype.
//
// Ownership: copies and views of a Tensor share its memory, which is freed with the last of them. A
// Tensor knows nothing of gradients. A default-made Tensor is empty: it has no memory and no
// context, and calls that need them throw Error(invalid_argument).
//
// Layout: row-major unless strides() say otherwise. The result of an eager call (dlprim/ops.hpp)
// may internally still be in its engine's layout, for example with channels in blocks of 16. It is
// converted to row-major when the program reaches the memory, by a copy, host_data() or
// opencl::memory(): the first of these allocates memory from the context's pool, which can throw
// Error(out_of_memory), and enqueues one conversion, once for all tensors that share the memory.
// The conversion itself does not wait.
//
// Threads: different Tensor objects may be used by different threads at the same time, also where
// they share memory or a context; dlprim/context.hpp says what else may run then. The library does
// not order threads: a program that reads in one thread what another writes must order the two.
//
// Errors: a null host pointer with a size over 0 is an Error(invalid_argument); nothing has changed
// then.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/dtype.hpp>
#include <dlprim/event.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dlprim {

class Tensor {
  public:
    Tensor() = default;
    /// New memory, row-major, contents undefined. Throws Error(out_of_memory) with what is needed
    /// and what the device offers.
    Tensor(const Context& context, const Shape& shape, DType dtype = DType::f32);
    /// New memory holding a copy of `values` (shape.numel() of them), converted to `dtype`.
    Tensor(const Context& context, const Shape& shape, const std::vector<float>& values,
           DType dtype = DType::f32);

    /// Wraps a cl_mem of the context's own cl_context without a copy, and retains it. The tensor is
    /// row-major from `byte_offset` on. Throws Error(invalid_argument) where the cl_mem is null,
    /// too small or of another cl_context, and on the host.
    static Tensor wrap_opencl(const Context& context, void* cl_mem_handle,
                              std::uint64_t byte_offset, const Shape& shape,
                              DType dtype = DType::f32);
    /// Wraps host memory without a copy; `context` must be the host. The memory must outlive all
    /// tensors on it, or belong to `owner`, which is released with the last of them, by whichever
    /// thread that is. Throws Error(invalid_argument) for another device, and for null data.
    static Tensor wrap_host(const Context& context, void* data, const Shape& shape,
                            DType dtype = DType::f32, std::shared_ptr<void> owner = nullptr);

    /// Whether it has memory; false for a default-made Tensor.
    bool defined() const noexcept { return buffer_ != nullptr || deferred_ != nullptr; }
    const Context& context() const;
    const Shape& shape() const noexcept { return shape_; }
    const std::vector<std::int64_t>& strides() const noexcept { return strides_; }  ///< in elements
    DType dtype() const noexcept { return dtype_; }
    /// Of the first element within the memory that tensors share.
    std::uint64_t byte_offset() const noexcept { return byte_offset_; }
    std::uint64_t bytes() const noexcept;  ///< number of elements times the size of one
    bool contiguous() const noexcept;      ///< whether elements lie row-major without gaps
    /// Whether both are views on the same memory, which then may overlap. Memory that a program has
    /// wrapped twice counts as two. Empty tensors share nothing.
    bool shares_memory(const Tensor& other) const noexcept;

    // Views, which share this tensor's memory. A negative dimension counts from the end. All throw
    // Error(invalid_argument) for arguments that do not fit the shape.
    /// The same elements in another shape. This tensor must be contiguous().
    Tensor reshape(const Shape& shape) const;
    /// Indices [begin, end) of dimension `dim`.
    Tensor slice(int dim, std::int64_t begin, std::int64_t end) const;
    /// The same elements with two dimensions exchanged.
    Tensor transpose(int dim0, int dim1) const;
    /// Any view. Its element [i, j, ...] lies `offset` + i * strides[0] + j * strides[1] + ...
    /// elements behind this tensor's first element. Strides must not be negative, and the view must
    /// lie within the memory from this tensor's first element to its last.
    Tensor view(const Shape& shape, const std::vector<std::int64_t>& strides,
                std::int64_t offset = 0) const;
    /// The dimensions in another order: dimension i of the view is dimension dims[i] of this
    /// tensor. `dims` names each dimension once.
    Tensor permute(const std::vector<int>& dims) const;
    /// This tensor broadcast to `shape`: a dimension of size 1, or one that this tensor lacks in
    /// front, gets any size and stride 0. So several elements of the view are the same memory.
    Tensor expand(const Shape& shape) const;
    /// The same bytes as elements of another type. Where the types differ in size, the last
    /// dimension changes: it must be contiguous, its bytes must be a whole number of new elements,
    /// and so must the byte_offset() and all other strides. A result of an eager call becomes
    /// row-major as by opencl::memory().
    Tensor bit_cast(DType dtype) const;

    /// This tensor if it is contiguous(), else a row-major copy in new memory from the context's
    /// pool. The copy runs on the device and the call does not wait.
    Tensor to_contiguous() const;

    // Copies between host and device. They wait until they are done. The host side is row-major and
    // has exactly bytes() bytes, or numel() values: another size throws Error(invalid_argument).
    void copy_from_host(const void* data, std::uint64_t bytes);
    void copy_to_host(void* data, std::uint64_t bytes) const;
    void copy_from(const std::vector<float>& values);  ///< converts to dtype()
    std::vector<float> to_floats() const;              ///< converts from dtype()
    std::vector<double> to_doubles() const;            ///< converts from dtype()

    // Copies that do not wait. The host memory belongs to the copy until the event is done: till
    // then it must not be freed, nor, for copy_from_host_async(), be changed. PinnedMemory makes
    // them fast; with other memory a driver may wait after all. They are ordered with the context's
    // other work: what is enqueued later sees the new elements. A view with gaps is copied as by
    // the calls above, which wait, and the event is done. A null pointer and a wrong size throw as
    // there.
    Event copy_from_host_async(const void* data, std::uint64_t bytes);
    Event copy_to_host_async(void* data, std::uint64_t bytes) const;

    /// Copies the elements to `target`, which has the same shape and type and may be of another
    /// context, on another device or the host. Within a context the copy is only enqueued; both may
    /// be views of one memory, if they do not overlap. Between contexts it goes through pinned
    /// memory of the host, and the call waits. Throws Error(invalid_argument) for another shape or
    /// type.
    void copy_to(Tensor& target) const;
    /// A row-major copy on another context, or this tensor if it is on that one. Waits as
    /// copy_to().
    Tensor to(const Context& context) const;

    /// On the host context, the address of the first element, for reading and writing elements in
    /// place by strides(). The address is valid while any tensor on the memory lives. After this
    /// call the library assumes that the program may write there at any time, so that eager calls
    /// pack weights that lie there anew at every call. Throws Error(unsupported) for other devices.
    void* host_data() const;
    /// Sets every element to `value`, converted to dtype(). Does not wait.
    void fill(double value);

  private:
    friend class internal::Access;
    Tensor(Context context, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset, Shape shape,
           DType dtype);
    explicit Tensor(std::shared_ptr<Deferred> deferred);
    const std::shared_ptr<Buffer>& buffer() const { return deferred_ ? plain() : buffer_; }
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
