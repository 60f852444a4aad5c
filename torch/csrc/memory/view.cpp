// SPDX-License-Identifier: MIT
// See view.hpp.
#include "memory/view.hpp"

#include "device/devices.hpp"
#include "memory/convert.hpp"

#include <optional>

namespace dlprim_torch {
namespace {

std::optional<dp::DType> find_dtype(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return dp::DType::f32;
        case at::kHalf:
            return dp::DType::f16;
        case at::kBFloat16:
            return dp::DType::bf16;
        case at::kDouble:
            return dp::DType::f64;
        case at::kChar:
            return dp::DType::i8;
        case at::kByte:
            return dp::DType::u8;
        case at::kShort:
            return dp::DType::i16;
        case at::kUInt16:
            return dp::DType::u16;
        case at::kInt:
            return dp::DType::i32;
        case at::kUInt32:
            return dp::DType::u32;
        case at::kLong:
            return dp::DType::i64;
        case at::kUInt64:
            return dp::DType::u64;
        case at::kBool:
            return dp::DType::boolean;
        default:
            return std::nullopt;
    }
}

/// Sizes in which an at::Tensor's elements are `factor` elements each.
std::vector<std::int64_t> times(c10::IntArrayRef strides, std::int64_t factor) {
    std::vector<std::int64_t> all(strides.begin(), strides.end());
    for (std::int64_t& stride : all) stride *= factor;
    return all;
}

/// The first element of a tensor, counted in elements of `size` bytes.
std::int64_t begin_of(const at::Tensor& tensor, const Memory::Place& place, std::size_t size) {
    const std::size_t bytes =
        place.byte_offset +
        static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
    TORCH_CHECK_NOT_IMPLEMENTED(bytes % size == 0, "A tensor of \"ocl\" begins at byte ", bytes,
                                " of its memory, between elements of ", size, " bytes.");
    return static_cast<std::int64_t>(bytes / size);
}

dp::Tensor view_as(const at::Tensor& tensor, dp::DType dtype) {
    const Memory::Place place = Memory::locate(tensor.storage());
    return place.memory.view(dtype, tensor.sizes(), tensor.strides(),
                             begin_of(tensor, place, tensor.element_size()));
}

}  // namespace

dp::DType dtype_of(at::ScalarType type) {
    const std::optional<dp::DType> found = find_dtype(type);
    TORCH_CHECK_NOT_IMPLEMENTED(found, "The device \"ocl\" does not compute with ", type,
                                ". Convert the tensor to another dtype, or move it to the CPU.");
    return *found;
}

bool has_dtype(at::ScalarType type) {
    return find_dtype(type).has_value();
}

at::ScalarType scalar_type_of(dp::DType dtype) {
    switch (dtype) {
        case dp::DType::f32:
            return at::kFloat;
        case dp::DType::f16:
            return at::kHalf;
        case dp::DType::bf16:
            return at::kBFloat16;
        case dp::DType::f64:
            return at::kDouble;
        case dp::DType::i8:
            return at::kChar;
        case dp::DType::u8:
            return at::kByte;
        case dp::DType::i16:
            return at::kShort;
        case dp::DType::u16:
            return at::kUInt16;
        case dp::DType::i32:
            return at::kInt;
        case dp::DType::u32:
            return at::kUInt32;
        case dp::DType::i64:
            return at::kLong;
        case dp::DType::u64:
            return at::kUInt64;
        case dp::DType::boolean:
            return at::kBool;
        default:
            break;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(false, "PyTorch has no type for ", std::string(name_of(dtype)),
                                ".");
}

const dp::Context& context_of(const at::Tensor& tensor) {
    return context(tensor.device().index());
}

dp::Tensor view_of(const at::Tensor& tensor) {
    if (tensor.is_neg()) return view_of(tensor.resolve_neg());
    return view_as(tensor, dtype_of(tensor.scalar_type()));
}

dp::Tensor plain_of(const at::Tensor& tensor) {
    return plain(view_of(tensor));
}

dp::Tensor bits_of(const at::Tensor& tensor) {
    switch (tensor.element_size()) {
        case 1:
            return view_as(tensor, has_dtype(tensor.scalar_type()) ? dtype_of(tensor.scalar_type())
                                                                   : dp::DType::u8);
        case 2:
            return view_as(tensor, has_dtype(tensor.scalar_type()) ? dtype_of(tensor.scalar_type())
                                                                   : dp::DType::i16);
        case 4:
            return view_as(tensor, has_dtype(tensor.scalar_type()) ? dtype_of(tensor.scalar_type())
                                                                   : dp::DType::i32);
        case 8:
            return view_as(tensor, dp::DType::i64);
        default:
            break;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.element_size() == 16, "The device \"ocl\" does not hold ",
                                tensor.scalar_type(), ".");
    std::vector<std::int64_t> sizes = tensor.sizes().vec(), strides = times(tensor.strides(), 2);
    sizes.push_back(2);
    strides.push_back(1);
    const Memory::Place place = Memory::locate(tensor.storage());
    return place.memory.view(dp::DType::i64, sizes, strides, begin_of(tensor, place, 8));
}

bool is_whole(const at::Tensor& tensor) {
    const Memory::Place place = Memory::locate(tensor.storage());
    return place.byte_offset == 0 && place.memory.bytes() == tensor.storage().nbytes() &&
           tensor.storage_offset() == 0 && tensor.is_contiguous() &&
           tensor.storage().nbytes() ==
               static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
}

void give(const at::Tensor& out, const dp::Tensor& result) {
    if (out.numel() == 0) return;
    TORCH_INTERNAL_ASSERT(result.shape().numel() == out.numel(),
                          "an operator's result does not fit its tensor");
    if (is_whole(out) && result.contiguous() && result.dtype() == dtype_of(out.scalar_type()))
        return memory_of(out).hang(result);
    const dp::Shape shape(std::span(out.sizes().data(), out.sizes().size()));
    copy(result.shape() == shape ? result : result.reshape(shape), view_of(out));
}

at::Tensor new_tensor(const dp::Tensor& result, c10::Device device) {
    // As at::empty() does it, which takes longer than all the rest of a result of a compiled graph.
    const std::size_t bytes = result.bytes();
    auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(bytes),
        Memory::make(device.index(), bytes), c10::GetAllocator(device.type()), true);
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(scalar_type_of(result.dtype())));
    const auto sizes = result.shape().dims();
    made.unsafeGetTensorImpl()->set_sizes_contiguous({sizes.data(), sizes.size()});
    give(made, result);
    return made;
}

}  // namespace dlprim_torch
