// SPDX-License-Identifier: MIT
// See generator.hpp.
#include "device/generator.hpp"

#include "device/devices.hpp"

#include <ATen/Utils.h>
#include <c10/core/TensorImpl.h>

#include <cstring>
#include <mutex>

namespace dlprim_torch {
namespace {

constexpr std::int64_t state_bytes = 2 * sizeof(std::uint64_t);  // seed and offset

}  // namespace

Generator::Generator(c10::DeviceIndex device)
    : GeneratorImpl(c10::Device(device_type(), device),
                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void Generator::set_current_seed(std::uint64_t seed) {
    seed_ = seed;
    offset_ = 0;
}

std::uint64_t Generator::seed() {
    set_current_seed(c10::detail::getNonDeterministicRandom(true));
    return seed_;
}

void Generator::set_state(const c10::TensorImpl& state) {
    TORCH_CHECK_TYPE(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                     "The state of a generator is a tensor of bytes on the CPU.");
    TORCH_CHECK_VALUE(state.numel() == state_bytes && state.is_contiguous(),
                      "The state of a generator of \"ocl\" has ", state_bytes, " bytes, not ",
                      state.numel(), ".");
    const auto* const bytes = static_cast<const std::uint8_t*>(state.data());
    std::memcpy(&seed_, bytes, sizeof seed_);
    std::memcpy(&offset_, bytes + sizeof seed_, sizeof offset_);
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
    const at::Tensor state =
        at::empty({state_bytes}, at::TensorOptions(at::kByte).device(at::kCPU));
    auto* const bytes = state.mutable_data_ptr<std::uint8_t>();
    std::memcpy(bytes, &seed_, sizeof seed_);
    std::memcpy(bytes + sizeof seed_, &offset_, sizeof offset_);
    return state.getIntrusivePtr();
}

Generator* Generator::clone_impl() const {
    auto* const copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
}

const at::Generator& default_generator(int device) {
    static auto* const all = [] {
        auto* const made = new std::vector<at::Generator>;
        for (int i = 0; i < device_count(); ++i)
            made->push_back(at::make_generator<Generator>(static_cast<c10::DeviceIndex>(i)));
        return made;
    }();
    if (device < 0) device = current_device();
    TORCH_CHECK(device < static_cast<int>(all->size()), "There is no device ocl:", device, ".");
    return (*all)[static_cast<std::size_t>(device)];
}

std::pair<std::uint64_t, std::uint64_t> draw(const std::optional<at::Generator>& generator,
                                             int device) {
    auto* const own = at::get_generator_or_default<Generator>(generator, default_generator(device));
    const std::lock_guard lock(own->mutex_);
    return own->next();
}

}  // namespace dlprim_torch
