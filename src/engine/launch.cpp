// SPDX-License-Identifier: MIT
// Launches: kernel calls, which set a buffer again only if it changed, and host work.
#include "engine/launch.hpp"

#include "base/scalar_value.hpp"
#include "base/text.hpp"
#include "runtime/expected_launches.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>
#include <cstring>

namespace dlprim {

NDRange line_range(const Traits& device, std::int64_t count, std::size_t group) {
    group = static_cast<std::size_t>(std::clamp<std::uint64_t>(device.max_work_group, 1, group));
    const std::size_t groups = (static_cast<std::size_t>(count) + group - 1) / group;
    return {1, {groups * group, 1, 1}, {group, 1, 1}};
}

NDRange group_range(std::int64_t groups, std::int64_t items) {
    const auto group = static_cast<std::size_t>(items);
    return {1, {static_cast<std::size_t>(groups) * group, 1, 1}, {group, 1, 1}};
}

const char* count_type(std::uint64_t count) {
    return count < std::uint64_t(1) << 31 ? "uint" : "ulong";
}

KernelCall::KernelCall(std::shared_ptr<Program> program, std::string_view kernel, NDRange range)
    : program_(std::move(program)),
      kernel_(program_->kernel(kernel)),
      range_(range),
      given_(static_cast<std::size_t>(kernel_->parameter_count()), false),
      scalars_(given_.size(), 0) {
    expect_launch(*program_, kernel, range_);
}

KernelCall& KernelCall::tensor(std::string_view name, int index, std::size_t element_bytes) {
    return tensor_at(name, index, 0, element_bytes);
}

KernelCall& KernelCall::tensor_at(std::string_view name, int index, std::uint64_t extra_bytes,
                                  std::size_t element_bytes) {
    Binding binding{};
    binding.buffer_index = kernel_->index_of(name);
    binding.offset_index = kernel_->index_of(cat(name, "_offset"));
    binding.operand = index;
    binding.extra_bytes = extra_bytes;
    binding.element_bytes = element_bytes;
    given_[static_cast<std::size_t>(binding.buffer_index)] = true;
    given_[static_cast<std::size_t>(binding.offset_index)] = true;
    bindings_.push_back(binding);
    return *this;
}

KernelCall& KernelCall::set(std::string_view name, const void* value, std::size_t bytes) {
    const int index = kernel_->index_of(name);
    kernel_->set(index, value, bytes);
    given_[static_cast<std::size_t>(index)] = true;
    std::memcpy(&scalars_[static_cast<std::size_t>(index)], value, bytes);
    return *this;
}

KernelCall& KernelCall::scalar(std::string_view name, std::int32_t value) {
    return set(name, &value, sizeof(value));
}

KernelCall& KernelCall::scalar(std::string_view name, std::int64_t value) {
    return set(name, &value, sizeof(value));
}

KernelCall& KernelCall::scalar(std::string_view name, float value) {
    return set(name, &value, sizeof(value));
}

namespace {

/// The scalar's bits as a kernel's parameter of a type, in the lowest bytes.
std::uint64_t bits_of(const Scalar& scalar, DType as) {
    std::uint64_t bits = 0;
    const auto take = [&](auto value) { std::memcpy(&bits, &value, sizeof(value)); };
    if (as == DType::f32)
        take(value_of<float>(scalar));
    else if (as == DType::f64)
        take(value_of<double>(scalar));
    else
        take(value_of<std::int64_t>(scalar));
    return bits;
}

}  // namespace

KernelCall& KernelCall::argument(std::string_view name, int number, DType as) {
    const std::uint64_t zero = 0;
    set(name, &zero, size_of(as));
    arguments_.push_back({kernel_->index_of(name), number, as});
    return *this;
}

void KernelCall::set_scalars(std::span<const Scalar> values) {
    for (const Argument& argument : arguments_) {
        const std::uint64_t bits =
            bits_of(values[static_cast<std::size_t>(argument.number)], argument.as);
        std::uint64_t& known = scalars_[static_cast<std::size_t>(argument.parameter)];
        if (known == bits) continue;
        kernel_->set(argument.parameter, &bits, size_of(argument.as));
        known = bits;
    }
}

KernelCall& KernelCall::memory(std::string_view name, const Buffer& memory) {
    const int index = kernel_->index_of(name);
    kernel_->set(index, memory);
    given_[static_cast<std::size_t>(index)] = true;
    return *this;
}

KernelCall& KernelCall::refuses(ContextImpl& context) {
    refusals_ = context.queue().refusals();
    memory("refused", refusals_->memory());
    set_owner("");
    return *this;
}

void KernelCall::set_owner(const std::string& who) {
    scalar("refused_by", std::int32_t{refusals_->number_of(who)});
}

void KernelCall::check() const {
    std::string missing;
    for (std::size_t i = 0; i < given_.size(); ++i)
        if (!given_[i]) missing += cat(missing.empty() ? "" : ", ", "number ", i);
    require(missing.empty(), "kernel '", kernel_->name(), "': parameters not given: ", missing);
}

void KernelCall::enqueue(Queue& queue, std::span<const BufferRef> operands) {
    for (Binding& binding : bindings_) {
        require(static_cast<std::size_t>(binding.operand) < operands.size() &&
                    operands[static_cast<std::size_t>(binding.operand)].buffer != nullptr,
                "kernel '", kernel_->name(), "': operand ", binding.operand, " is not bound");
        const BufferRef& ref = operands[static_cast<std::size_t>(binding.operand)];
        const bool first = binding.bound_id == 0;
        if (binding.bound_id != ref.buffer->id()) {
            kernel_->set(binding.buffer_index, *ref.buffer);
            binding.bound_id = ref.buffer->id();
        }
        const std::uint64_t offset =
            (ref.handle_offset() + binding.extra_bytes) / binding.element_bytes;
        if (first || binding.bound_offset != offset) {
            kernel_->set(binding.offset_index, &offset, sizeof(offset));
            binding.bound_offset = offset;
        }
    }
    queue.launch(*kernel_, range_);
    if (refusals_ != nullptr) refusals_->expect();
}

KernelLaunch& KernelLaunch::add(KernelCall call) {
    call.check();
    calls_.push_back(std::move(call));
    return *this;
}

void KernelLaunch::enqueue(Queue& queue, std::span<const BufferRef> operands) {
    for (KernelCall& call : calls_) call.enqueue(queue, operands);
}

void HostLaunch::enqueue(Queue& queue, std::span<const BufferRef> operands) {
    queue.run([&](HostPool& pool) { work_(pool, operands); });
}

}  // namespace dlprim
