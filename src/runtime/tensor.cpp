// SPDX-License-Identifier: MIT
// Tensor: views, and copies that gather or scatter on the host if a view has gaps.
#include <dlprim/tensor.hpp>

#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/copy_between.hpp"
#include "runtime/deferred.hpp"

#include <algorithm>
#include <cstring>

namespace dlprim {
namespace {

std::uint64_t byte_size(const Shape& shape, DType dtype) {
    return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
}

// The number of elements from the first to the last one of a non-empty strided view.
std::uint64_t extent(const Shape& shape, const std::vector<std::int64_t>& strides) {
    std::int64_t last = 0;
    for (int i = 0; i < shape.rank(); ++i)
        last += (shape[i] - 1) * strides[static_cast<std::size_t>(i)];
    return static_cast<std::uint64_t>(last) + 1;
}

// Calls visit(element index in the view's memory) in row-major order of the view.
template <typename Visit>
void each_element(const Shape& shape, const std::vector<std::int64_t>& strides, Visit&& visit) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
    std::int64_t at = 0;
    for (std::int64_t n = shape.numel(); n > 0; --n) {
        visit(at);
        for (int i = shape.rank() - 1; i >= 0; --i) {
            const auto d = static_cast<std::size_t>(i);
            at += strides[d];
            if (++index[d] < shape[i]) break;
            at -= strides[d] * shape[i];
            index[d] = 0;
        }
    }
}

// Whether a non-empty view is inside the first `elements` of its memory. The sums cannot overflow:
// before a stride is multiplied, it is compared with the number of remaining elements.
bool stays_within(const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t offset,
                  std::uint64_t elements) {
    if (offset < 0 || static_cast<std::uint64_t>(offset) >= elements) return false;
    std::int64_t left = static_cast<std::int64_t>(elements) - 1 - offset;
    for (int i = 0; i < shape.rank(); ++i) {
        const std::int64_t stride = strides[static_cast<std::size_t>(i)];
        const std::int64_t steps = shape[i] - 1;
        if (stride < 0 || (steps > 0 && stride > left / steps)) return false;
        left -= stride * steps;
    }
    return true;
}

std::string list(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t number : numbers) text += cat(text.empty() ? "" : ", ", number);
    return cat("[", text, "]");
}

void check_pointer(const void* data, const Shape& shape) {
    if (data == nullptr)
        fail(ErrorKind::invalid_argument, "the host memory to copy a tensor of shape ", shape.str(),
             " from or to must not be null");
}

}  // namespace

Tensor::Tensor(const Context& context, const Shape& shape, DType dtype)
    : context_(context),
      buffer_(Access::impl(context).allocate_cached(byte_size(shape, dtype))),
      shape_(shape),
      strides_(shape.strides()),
      dtype_(dtype) {}

Tensor::Tensor(const Context& context, const Shape& shape, const std::vector<float>& values,
               DType dtype)
    : Tensor(context, shape, dtype) {
    copy_from(values);
}

Tensor::Tensor(Context context, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset,
               Shape shape, DType dtype)
    : context_(std::move(context)),
      buffer_(std::move(buffer)),
      byte_offset_(byte_offset),
      shape_(std::move(shape)),
      strides_(shape_.strides()),
      dtype_(dtype) {
    // Tensors are made in every call, so the text is built only when there is an error.
    if (buffer_ == nullptr)
        fail(ErrorKind::invalid_argument, "a tensor of shape ", shape_.str(), " needs memory");
    require(byte_offset_ % size_of(dtype_) == 0, "offset ", byte_offset_,
            " is not a multiple of the ", size_of(dtype_), " bytes of an element");
    if (byte_offset_ > buffer_->bytes() ||
        byte_size(shape_, dtype_) > buffer_->bytes() - byte_offset_)
        fail(ErrorKind::invalid_argument, "a tensor of shape ", shape_.str(), " at byte ",
             byte_offset_, " does not fit into memory of ", buffer_->bytes(), " bytes");
}

Tensor::Tensor(std::shared_ptr<Deferred> deferred)
    : context_((require(deferred != nullptr, "deferred contents must not be null"),
                deferred->context())),
      deferred_(std::move(deferred)),
      shape_(deferred_->shape()),
      strides_(shape_.strides()),
      dtype_(deferred_->dtype()) {}

const Context& Tensor::context() const {
    require(defined(), "an undefined tensor has no context");
    return *context_;
}

bool Tensor::shares_memory(const Tensor& other) const noexcept {
    return defined() && buffer_ == other.buffer_ && deferred_ == other.deferred_;
}

const std::shared_ptr<Buffer>& Tensor::plain() const {
    return deferred_->plain();
}

const std::shared_ptr<Buffer>& Tensor::overwritten() const {
    if (!deferred_) return buffer_;
    const bool whole = contiguous() && byte_offset_ == 0 && bytes() == deferred_->plain_bytes();
    return whole ? deferred_->overwrite() : deferred_->plain();
}

Tensor Tensor::wrap_opencl(const Context& context, void* cl_mem_handle, std::uint64_t byte_offset,
                           const Shape& shape, DType dtype) {
    require(!Access::impl(context).is_host(),
            "a cl_mem can only be wrapped for an OpenCL device, not for the host");
    return Tensor(context,
                  Access::impl(context).wrap(cl_mem_handle, byte_offset + byte_size(shape, dtype)),
                  byte_offset, shape, dtype);
}

Tensor Tensor::wrap_host(const Context& context, void* data, const Shape& shape, DType dtype,
                         std::shared_ptr<void> owner) {
    require(Access::impl(context).is_host(),
            "host memory can only be wrapped for the host, not for device ", context.info().str());
    require(data != nullptr || shape.empty(), "host memory to wrap as a tensor of shape ",
            shape.str(), " must not be null");
    std::shared_ptr<Buffer> buffer = Access::impl(context).wrap(data, byte_size(shape, dtype));
    if (owner != nullptr) {
        Buffer* const wrapped = buffer.get();
        buffer = {wrapped, [kept = std::move(buffer), owner = std::move(owner)](Buffer*) {}};
    }
    return Tensor(context, std::move(buffer), 0, shape, dtype);
}

std::uint64_t Tensor::bytes() const noexcept {
    return byte_size(shape_, dtype_);
}

bool Tensor::contiguous() const noexcept {
    std::int64_t expected = 1;
    for (int i = shape_.rank() - 1; i >= 0; --i) {
        if (shape_[i] != 1 && strides_[static_cast<std::size_t>(i)] != expected)
            return shape_.empty();
        expected *= shape_[i];
    }
    return true;
}

Tensor Tensor::reshape(const Shape& shape) const {
    if (shape.numel() != shape_.numel())
        fail(ErrorKind::invalid_argument, "a tensor of shape ", shape_.str(), " cannot be seen as ",
             shape.str(), ": they differ in the number of elements");
    if (!contiguous())
        fail(ErrorKind::invalid_argument, "only a tensor without gaps can be reshaped; shape ",
             shape_.str());
    Tensor view = *this;
    view.shape_ = shape;
    view.strides_ = shape.strides();
    return view;
}

Tensor Tensor::slice(int dim, std::int64_t begin, std::int64_t end) const {
    require(dim >= -shape_.rank() && dim < shape_.rank(), "dimension ", dim, " is not in shape ",
            shape_.str());
    const int d = dim < 0 ? dim + shape_.rank() : dim;
    require(begin >= 0 && begin <= end && end <= shape_[d], "[", begin, ", ", end,
            ") is not a range of dimension ", d, " of shape ", shape_.str());
    Tensor view = *this;
    view.shape_ = shape_.with(d, end - begin);
    if (end > begin)
        view.byte_offset_ +=
            static_cast<std::uint64_t>(begin * strides_[static_cast<std::size_t>(d)]) *
            size_of(dtype_);
    return view;
}

Tensor Tensor::transpose(int dim0, int dim1) const {
    std::size_t d[2];
    for (int i = 0; i < 2; ++i) {
        const int dim = i == 0 ? dim0 : dim1;
        require(dim >= -shape_.rank() && dim < shape_.rank(), "dimension ", dim,
                " is not in shape ", shape_.str());
        d[i] = static_cast<std::size_t>(dim < 0 ? dim + shape_.rank() : dim);
    }
    std::vector<std::int64_t> dims = shape_.to_vector();
    std::swap(dims[d[0]], dims[d[1]]);
    Tensor view = *this;
    view.shape_ = Shape(dims);
    std::swap(view.strides_[d[0]], view.strides_[d[1]]);
    return view;
}

Tensor Tensor::permute(const std::vector<int>& dims) const {
    const int rank = shape_.rank();
    require(static_cast<int>(dims.size()) == rank, "an order of the dimensions of shape ",
            shape_.str(), " names ", rank, " dimensions, not ", dims.size());
    std::vector<std::int64_t> sizes(dims.size()), strides(dims.size());
    std::vector<bool> used(dims.size(), false);
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const int dim = dims[i];
        require(dim >= -rank && dim < rank, "dimension ", dim, " is not in shape ", shape_.str());
        const auto d = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
        require(!used[d], "an order of the dimensions of shape ", shape_.str(), " names dimension ",
                d, " twice");
        used[d] = true;
        sizes[i] = shape_[static_cast<int>(d)];
        strides[i] = strides_[d];
    }
    Tensor view = *this;
    view.shape_ = Shape(sizes);
    view.strides_ = std::move(strides);
    return view;
}

Tensor Tensor::expand(const Shape& shape) const {
    require(defined(), "an undefined tensor has no views");
    const int lead = shape.rank() - shape_.rank();
    std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()), 0);
    bool fits = lead >= 0;
    for (int i = 0; fits && i < shape_.rank(); ++i) {
        fits = shape_[i] == 1 || shape_[i] == shape[lead + i];
        if (shape_[i] == shape[lead + i])
            strides[static_cast<std::size_t>(lead + i)] = strides_[static_cast<std::size_t>(i)];
    }
    if (!fits)
        fail(ErrorKind::invalid_argument, "a tensor of shape ", shape_.str(),
             " cannot be expanded to ", shape.str(),
             ": only dimensions of size 1 and new ones in front can get another size");
    Tensor view = *this;
    view.shape_ = shape;
    view.strides_ = std::move(strides);
    return view;
}

Tensor Tensor::bit_cast(DType dtype) const {
    require(defined(), "an undefined tensor has no views");
    if (deferred_) plain();  // other layouts are made for elements of this type
    const std::size_t from = size_of(dtype_), to = size_of(dtype);
    Tensor view = *this;
    view.dtype_ = dtype;
    if (from == to) return view;
    const auto refuse = [&](const char* why) {
        fail(ErrorKind::invalid_argument, "the ", name_of(dtype_),
             " elements of a tensor of shape ", shape_.str(), " with strides ", list(strides_),
             " cannot be seen as ", name_of(dtype), ": ", why);
    };
    const auto last = static_cast<std::size_t>(std::max(0, shape_.rank() - 1));
    if (shape_.rank() == 0) refuse("the sizes of elements differ, and it has no dimension");
    if (strides_[last] != 1 && shape_[-1] != 1) refuse("its last dimension is not contiguous");
    // In numbers of the smaller type, `ratio` of which make the larger one.
    const auto ratio = static_cast<std::int64_t>(from > to ? from / to : to / from);
    const auto change = [&](std::int64_t number) {
        if (from > to) return number * ratio;
        if (number % ratio != 0)
            refuse("its last dimension, an offset or a stride is not a whole number of them");
        return number / ratio;
    };
    view.shape_ = shape_.with(-1, change(shape_[-1]));
    if (byte_offset_ % to != 0) change(1);
    for (std::size_t d = 0; d < last; ++d)
        if (shape_[static_cast<int>(d)] > 1) view.strides_[d] = change(strides_[d]);
    view.strides_[last] = 1;
    return view;
}

Tensor Tensor::view(const Shape& shape, const std::vector<std::int64_t>& strides,
                    std::int64_t offset) const {
    require(defined(), "an undefined tensor has no views");
    require(static_cast<int>(strides.size()) == shape.rank(), "a view of shape ", shape.str(),
            " takes ", shape.rank(), " strides, not ", strides.size());
    const bool inside =
        shape.empty() ||
        (!shape_.empty() && stays_within(shape, strides, offset, extent(shape_, strides_)));
    if (!inside)
        fail(ErrorKind::invalid_argument, "a view of shape ", shape.str(), " with strides ",
             list(strides), " from element ", offset, " on leaves the tensor of shape ",
             shape_.str(), " that it is to show");
    Tensor view = *this;
    view.shape_ = shape;
    view.strides_ = strides;
    if (!shape.empty()) view.byte_offset_ += static_cast<std::uint64_t>(offset) * size_of(dtype_);
    return view;
}

void Tensor::copy_from_host(const void* data, std::uint64_t size) {
    require(defined(), "an undefined tensor holds no elements");
    require(size == bytes(), "a tensor of shape ", shape_.str(), " takes ", bytes(), " bytes, not ",
            size);
    if (size == 0) return;
    check_pointer(data, shape_);
    Queue& queue = Access::impl(*context_).queue();
    const BufferRef place{overwritten().get(), byte_offset_};
    if (contiguous()) {
        queue.write(place, data, size, true);
        return;
    }
    const std::size_t element = size_of(dtype_);
    std::vector<std::byte> memory(extent(shape_, strides_) * element);
    queue.read(place, memory.data(), memory.size(), true);  // preserves the data in the gaps
    const auto* from = static_cast<const std::byte*>(data);
    each_element(shape_, strides_, [&](std::int64_t at) {
        std::memcpy(memory.data() + static_cast<std::size_t>(at) * element, from, element);
        from += element;
    });
    queue.write(place, memory.data(), memory.size(), true);
}

void Tensor::copy_to_host(void* data, std::uint64_t size) const {
    require(defined(), "an undefined tensor holds no elements");
    require(size == bytes(), "a tensor of shape ", shape_.str(), " holds ", bytes(), " bytes, not ",
            size);
    if (size == 0) return;
    check_pointer(data, shape_);
    Queue& queue = Access::impl(*context_).queue();
    const BufferRef place{buffer().get(), byte_offset_};
    if (contiguous()) {
        queue.read(place, data, size, true);
        return;
    }
    const std::size_t element = size_of(dtype_);
    std::vector<std::byte> memory(extent(shape_, strides_) * element);
    queue.read(place, memory.data(), memory.size(), true);
    auto* to = static_cast<std::byte*>(data);
    each_element(shape_, strides_, [&](std::int64_t at) {
        std::memcpy(to, memory.data() + static_cast<std::size_t>(at) * element, element);
        to += element;
    });
}

Event Tensor::copy_from_host_async(const void* data, std::uint64_t size) {
    require(defined(), "an undefined tensor holds no elements");
    if (!contiguous() || size != bytes() || size == 0) {
        copy_from_host(data, size);
        return {};
    }
    check_pointer(data, shape_);
    ContextImpl& impl = Access::impl(*context_);
    impl.queue().write({overwritten().get(), byte_offset_}, data, size, false);
    return Access::event(impl.record({}));
}

Event Tensor::copy_to_host_async(void* data, std::uint64_t size) const {
    require(defined(), "an undefined tensor holds no elements");
    if (!contiguous() || size != bytes() || size == 0) {
        copy_to_host(data, size);
        return {};
    }
    check_pointer(data, shape_);
    ContextImpl& impl = Access::impl(*context_);
    impl.queue().read({buffer().get(), byte_offset_}, data, size, false);
    return Access::event(impl.record({.looks = true}));
}

void Tensor::copy_to(Tensor& target) const {
    require(defined() && target.defined(), "an undefined tensor holds no elements");
    if (shape_ != target.shape_ || dtype_ != target.dtype_)
        fail(ErrorKind::invalid_argument, "a tensor of ", name_of(dtype_), ' ', shape_.str(),
             " cannot be copied to one of ", name_of(target.dtype_), ' ', target.shape_.str());
    if (shape_.empty()) return;
    if (!contiguous() || !target.contiguous()) {
        std::vector<std::byte> elements(bytes());
        copy_to_host(elements.data(), elements.size());
        return target.copy_from_host(elements.data(), elements.size());
    }
    const std::shared_ptr<Buffer>& from = buffer();
    copy_between(Access::impl(*context_), {from.get(), byte_offset_},
                 Access::impl(*target.context_), {target.overwritten().get(), target.byte_offset_},
                 bytes());
}

Tensor Tensor::to(const Context& context) const {
    if (this->context() == context) return *this;
    Tensor copy(context, shape_, dtype_);
    copy_to(copy);
    return copy;
}

void* Tensor::host_data() const {
    require(defined(), "an undefined tensor holds no elements");
    if (!Access::impl(*context_).is_host())
        fail(ErrorKind::unsupported, "memory of device ", context_->info().str(),
             " has no address on the host; copy_to_host() copies it");
    Buffer& memory = *buffer();
    memory.set_foreign();
    return memory.host() == nullptr ? nullptr : memory.host() + byte_offset_;
}

void Tensor::copy_from(const std::vector<float>& values) {
    require(static_cast<std::int64_t>(values.size()) == shape_.numel(), "a tensor of shape ",
            shape_.str(), " takes ", shape_.numel(), " values, not ", values.size());
    if (dtype_ == DType::f32) return copy_from_host(values.data(), bytes());
    std::vector<std::byte> converted(bytes());
    convert(values.data(), DType::f32, converted.data(), dtype_, values.size());
    copy_from_host(converted.data(), converted.size());
}

std::vector<float> Tensor::to_floats() const {
    std::vector<float> values(static_cast<std::size_t>(shape_.numel()));
    if (dtype_ == DType::f32) {
        copy_to_host(values.data(), bytes());
        return values;
    }
    std::vector<std::byte> raw(bytes());
    copy_to_host(raw.data(), raw.size());
    convert(raw.data(), dtype_, values.data(), DType::f32, values.size());
    return values;
}

std::vector<double> Tensor::to_doubles() const {
    std::vector<double> values(static_cast<std::size_t>(shape_.numel()));
    std::vector<std::byte> raw(bytes());
    copy_to_host(raw.data(), raw.size());
    convert(raw.data(), dtype_, values.data(), DType::f64, values.size());
    return values;
}

}  // namespace dlprim
