// SPDX-License-Identifier: MIT
// See memory.hpp.
#include "memory/memory.hpp"

#include "device/devices.hpp"
#include "device/errors.hpp"
#include "memory/addresses.hpp"
#include "memory/convert.hpp"

#include <algorithm>
#include <map>

namespace dlprim_torch {
namespace {

/// Which memory an address belongs to, for device_of_address(). A range of addresses keeps its size
/// when it is used again, so that ranges stay here, without memory (nullptr) while nobody has them.
struct Index {
    std::mutex mutex;
    std::map<std::uintptr_t, Memory*> by_begin;
};

Index& index_of_addresses() {
    static auto* const index = new Index;  // never destroyed, as tensors may outlive static objects
    return *index;
}

void destroy(void* memory) {
    delete static_cast<Memory*>(memory);
}

bool is_row_major(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    std::int64_t expected = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        if (sizes[i] != 1 && strides[i] != expected) return false;
        expected *= sizes[i];
    }
    return true;
}

bool has_sizes(const dp::Shape& shape, c10::IntArrayRef sizes) {
    const auto dims = shape.dims();
    return std::equal(dims.begin(), dims.end(), sizes.begin(), sizes.end());
}

/// The memory that has an address. Throws for any other address.
Memory& at_address(const void* address) {
    Index& index = index_of_addresses();
    const std::lock_guard lock(index.mutex);
    auto found = index.by_begin.upper_bound(number(address));
    Memory* const memory = found == index.by_begin.begin() ? nullptr : (--found)->second;
    TORCH_CHECK(memory != nullptr &&
                    number(address) - found->first < std::max<std::size_t>(memory->bytes(), 1),
                "The address is not one of \"ocl\".");
    return *memory;
}

}  // namespace

Memory::Memory(int device, std::size_t bytes)
    : device_(device), bytes_(bytes), address_(reserve_addresses(bytes)) {
    Index& index = index_of_addresses();
    const std::lock_guard lock(index.mutex);
    index.by_begin.insert_or_assign(number(address_), this);
}

Memory::~Memory() {
    {
        Index& index = index_of_addresses();
        const std::lock_guard lock(index.mutex);
        index.by_begin.find(number(address_))->second = nullptr;
    }
    release_addresses(address_, bytes_);
    // Drivers may be gone when the process exits, and do not survive a fork.
    if (!may_free()) new dp::Tensor(std::move(contents_));  // NOLINT: leaked on purpose
}

Memory::Place Memory::locate(const c10::Storage& storage) {
    auto* const memory = storage.data_ptr().cast_context<Memory>(&destroy);
    if (memory != nullptr) return {*memory, 0};
    TORCH_CHECK(storage.device().type() == c10::DeviceType::PrivateUse1,
                "Expected all tensors to be on the same device, but got one on ", storage.device(),
                " beside those on \"ocl\".");
    const void* const address = storage.data();
    Memory& found = at_address(address);
    return {found, number(address) - number(found.address())};
}

Memory& Memory::of(const c10::Storage& storage) {
    const Place place = locate(storage);
    TORCH_CHECK_NOT_IMPLEMENTED(place.byte_offset == 0 && place.memory.bytes() == storage.nbytes(),
                                "A storage within another one cannot be resized.");
    return place.memory;
}

c10::DataPtr Memory::make(int device, std::size_t bytes) {
    auto* const memory = new Memory(device, bytes);
    return {memory->address(), memory, &destroy,
            c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device))};
}

bool Memory::fresh() const {
    const std::lock_guard lock(mutex_);
    return !contents_.defined();
}

dp::Tensor Memory::typed(dp::DType dtype) {
    check_process();
    const std::lock_guard lock(mutex_);
    if (!contents_.defined()) {
        const auto elements = static_cast<std::int64_t>(bytes_ / dp::size_of(dtype));
        const dp::Context& own = context(device_);
        contents_ = translated([&] { return dp::Tensor(own, {elements}, dtype); });
    }
    if (contents_.dtype() == dtype) return contents_;
    return translated([&] { return bits_as(contents_, dtype); });
}

dp::Tensor Memory::view(dp::DType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                        std::int64_t offset) {
    const bool from_begin = offset == 0 && is_row_major(sizes, strides);
    dp::Tensor whole = typed(dtype);
    if (from_begin && has_sizes(whole.shape(), sizes)) return whole;
    return translated([&] {
        const dp::Shape shape(std::span(sizes.data(), sizes.size()));
        const std::int64_t elements = whole.shape().numel();
        if (from_begin && shape.numel() == elements) {
            dp::Tensor shaped = whole.reshape(shape);
            const std::lock_guard lock(mutex_);
            if (whole.shape().rank() == 1 && contents_.shape() == whole.shape() &&
                contents_.shares_memory(whole) && contents_.dtype() == dtype)
                contents_ = shaped;  // later views of these sizes are copies of it
            return shaped;
        }
        const dp::Tensor flat = whole.shape().rank() == 1 ? whole : whole.reshape({elements});
        return flat.view(shape, {strides.begin(), strides.end()}, offset);
    });
}

void Memory::hang(dp::Tensor whole) {
    const std::lock_guard lock(mutex_);
    contents_ = std::move(whole);
}

c10::Device device_of_address(void* address) {
    return {c10::DeviceType::PrivateUse1,
            static_cast<c10::DeviceIndex>(at_address(address).device())};
}

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
    TORCH_CHECK(storage.unsafeGetStorageImpl()->resizable(),
                "The storage of this tensor cannot be resized.");
    Memory& old = Memory::of(storage);
    if (bytes == storage.nbytes()) return;
    c10::DataPtr made = Memory::make(old.device(), bytes);
    if (!old.fresh() && std::min(bytes, old.bytes()) > 0) {
        auto& fresh = *static_cast<Memory*>(made.get_context());
        const auto kept = static_cast<std::int64_t>(std::min(bytes, old.bytes()));
        copy(old.view(dp::DType::u8, {kept}, {1}, 0), fresh.view(dp::DType::u8, {kept}, {1}, 0));
    }
    auto* const impl = storage.unsafeGetStorageImpl();
    impl->set_data_ptr_noswap(std::move(made));
    impl->set_nbytes(bytes);
}

}  // namespace dlprim_torch
