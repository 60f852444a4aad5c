// SPDX-License-Identifier: MIT
// Launch: a problem that is ready to run on one device: compiled, with its sizes and ranges
// computed.
//
// enqueue() does not allocate, wait, or compile. The exception is a launch that was made under
// BuildsLater and whose compile() was not called: its first enqueue() compiles. A launch on the
// host in a device's plan (plan/engine_by_host.hpp) allocates and waits. A launch must be used by
// one thread at a time, because it owns its cl_kernels.
#pragma once

#include "runtime/context_impl.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/scalar.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class KernelCall;

class Launch {
  public:
    virtual ~Launch() = default;
    /// `operands`: the problem's inputs, its outputs, and the workspace if workspace_bytes() > 0.
    virtual void enqueue(Queue& queue, std::span<const BufferRef> operands) = 0;
    /// The kernel calls that enqueue() makes, in order, if it does nothing else. Otherwise empty.
    /// Some may have scalars that each run sets.
    virtual std::span<const KernelCall> calls() const { return {}; }
    /// The kernel calls that enqueue() makes beside whatever else it does, for reports.
    virtual std::span<const KernelCall> reported_calls() const { return calls(); }
    /// Compiles what was postponed. Throws Error(build).
    virtual void compile() {}
    /// Sets the numbers that the problem leaves to each run: those of Pointwise programs whose
    /// scalars are arguments (engine/pointwise/job.hpp). They stay until they are set again.
    virtual void set_scalars(std::span<const Scalar> /* values */) {}
    /// Says whose launch it is, for errors about what its kernels refuse (KernelCall::refuses()).
    virtual void set_owner(const std::string& /* who */) {}
};

/// A range of at least `count` work-items, in work-groups of `group` or of the device's limit if
/// that is smaller. Kernels skip items beyond the count. The group size is not left to the driver:
/// it would use groups of one item if the count is prime, and drivers that compile for a group size
/// would compile again for every count.
NDRange line_range(const Traits& device, std::int64_t count, std::size_t group = 64);

/// A kernel call of a KernelLaunch.
///
/// A kernel has two parameters for each tensor, `global T* x, ulong x_offset`. The offset is in
/// elements of T. Sizes are run-time arguments (int or long) unless specialising the kernel pays.
class KernelCall {
  public:
    KernelCall(std::shared_ptr<Program> program, std::string_view kernel, NDRange range);
    /// Binds parameters `name` and `name`_offset to operand `index`. `element_bytes` is sizeof(T)
    /// in the kernel's signature.
    KernelCall& tensor(std::string_view name, int index, std::size_t element_bytes = 4);
    /// The same for a part of an operand (a workspace), `extra_bytes` after its start.
    KernelCall& tensor_at(std::string_view name, int index, std::uint64_t extra_bytes,
                          std::size_t element_bytes = 4);
    KernelCall& scalar(std::string_view name, std::int32_t value);
    KernelCall& scalar(std::string_view name, std::int64_t value);
    KernelCall& scalar(std::string_view name, float value);
    /// A parameter of type int, and several of them.
    KernelCall& size(std::string_view name, std::int64_t value) {
        return scalar(name, static_cast<std::int32_t>(value));
    }
    KernelCall& sizes(std::initializer_list<std::pair<const char*, std::int64_t>> all) {
        for (const auto& [name, value] : all) size(name, value);
        return *this;
    }
    /// The parameter gets scalar `number` of the run as f32, f64 or i64; 0 until it is set.
    KernelCall& argument(std::string_view name, int number, DType as);
    void set_scalars(std::span<const Scalar> values);
    /// Binds a parameter that has no offset to a whole memory.
    KernelCall& memory(std::string_view name, const Buffer& memory);
    void set_range(const NDRange& range) { range_ = range; }
    /// Binds the parameters `refused` and `refused_by`, by which the kernel says that an index is
    /// out of range (runtime/refusals.hpp).
    KernelCall& refuses(ContextImpl& context);
    /// Whether the kernel has these parameters.
    bool may_refuse() const { return refusals_ != nullptr; }
    /// Who refuses then: "[Gather 'x'] ".
    void set_owner(const std::string& who);
    /// Throws Error(invalid_argument) if a parameter has no value yet.
    void check() const;

    void enqueue(Queue& queue, std::span<const BufferRef> operands);
    void compile() { kernel_->compile(); }

    /// How the two parameters of a tensor are set.
    struct Binding {
        int buffer_index;
        int offset_index;
        int operand;
        std::uint64_t extra_bytes;
        std::size_t element_bytes;
        std::uint64_t bound_id;  // of the buffer that was bound last, 0 before the first
        std::uint64_t bound_offset;
    };
    const ProgramSource& source() const { return program_->source(); }
    const std::string& kernel() const { return kernel_->name(); }
    const NDRange& range() const { return range_; }
    std::span<const Binding> bindings() const { return bindings_; }
    /// Bits of the scalar parameter at `index`, in the lowest bytes.
    std::uint64_t scalar_bits(int index) const { return scalars_[static_cast<std::size_t>(index)]; }
    /// A parameter that each run sets: argument().
    struct Argument {
        int parameter;
        int number;
        DType as;
    };
    std::span<const Argument> arguments() const { return arguments_; }

  private:
    KernelCall& set(std::string_view name, const void* value, std::size_t bytes);

    std::shared_ptr<Program> program_;
    std::shared_ptr<Kernel> kernel_;
    NDRange range_;
    std::vector<Binding> bindings_;
    std::vector<bool> given_;
    std::vector<std::uint64_t> scalars_;  ///< by parameter
    std::vector<Argument> arguments_;
    Refusals* refusals_ = nullptr;  ///< of the context, if the kernel may refuse something
};

/// `groups` work-groups of `items` work-items.
NDRange group_range(std::int64_t groups, std::int64_t items);
/// The OpenCL C type for numbers up to `count`. Divisions of 32 bits are several times faster than
/// those of 64 bits.
const char* count_type(std::uint64_t count);

/// A sequence of kernel calls.
class KernelLaunch : public Launch {
  public:
    KernelLaunch() = default;
    explicit KernelLaunch(KernelCall call) { add(std::move(call)); }
    /// Throws like KernelCall::check().
    KernelLaunch& add(KernelCall call);
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;
    std::span<const KernelCall> calls() const override { return calls_; }
    void set_scalars(std::span<const Scalar> values) override {
        for (KernelCall& call : calls_) call.set_scalars(values);
    }
    void compile() override {
        for (KernelCall& call : calls_) call.compile();
    }
    void set_owner(const std::string& who) override {
        for (KernelCall& call : calls_)
            if (call.may_refuse()) call.set_owner(who);
    }

  private:
    std::vector<KernelCall> calls_;
};

/// Host work. It is called with the operands in the same order.
class HostLaunch : public Launch {
  public:
    using Work = std::function<void(HostPool&, std::span<const BufferRef>)>;
    explicit HostLaunch(Work work) : work_(std::move(work)) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;

  private:
    Work work_;
};

}  // namespace dlprim
