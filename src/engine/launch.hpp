// SPDX-License-Identifier: MIT
// Launch: a problem made ready to run on one device: compiled, its sizes and launch ranges settled.
//
// enqueue() allocates nothing, compiles nothing (unless it was made under BuildsLater and nobody
// has called compile()) and waits for nothing. A launch is for one thread at a time (it owns its
// cl_kernels).
#pragma once

#include "runtime/context_impl.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

class KernelCall;

class Launch {
  public:
    virtual ~Launch() = default;
    /// `operands`: the problem's inputs, its outputs, then, when workspace_bytes() > 0, the
    /// workspace.
    virtual void enqueue(Queue& queue, std::span<const BufferRef> operands) = 0;
    /// The kernel calls that enqueue() makes, in order, where that is all it does; else nothing.
    virtual std::span<const KernelCall> calls() const { return {}; }
    /// Compiles what was left for later. Throws Error(build).
    virtual void compile() {}
};

/// At least `count` work-items in work-groups of `group`, or of as many as the device takes.
/// Kernels leave out the items past the count. (A group left to the driver is of one item where the
/// count is prime, and another program for every count where the driver compiles for a group's
/// size.)
NDRange line_range(const Traits& device, std::int64_t count, std::size_t group = 64);

/// A kernel call inside a KernelLaunch.
///
/// A kernel takes each tensor as two parameters `global T* x, ulong x_offset`; the offset counts
/// elements of T. Sizes are run-time arguments (int or long) unless specialising pays.
class KernelCall {
  public:
    KernelCall(std::shared_ptr<Program> program, std::string_view kernel, NDRange range);
    /// Binds parameter `name` and `name`_offset to operand `index`; `element_bytes` is sizeof(T) in
    /// the kernel's signature.
    KernelCall& tensor(std::string_view name, int index, std::size_t element_bytes = 4);
    /// A place inside an operand (workspace parts): `extra_bytes` past its start.
    KernelCall& tensor_at(std::string_view name, int index, std::uint64_t extra_bytes,
                          std::size_t element_bytes = 4);
    KernelCall& scalar(std::string_view name, std::int32_t value);
    KernelCall& scalar(std::string_view name, std::int64_t value);
    KernelCall& scalar(std::string_view name, float value);
    /// Throws Error(invalid_argument) unless every parameter has been given.
    void check() const;

    void enqueue(Queue& queue, std::span<const BufferRef> operands);
    void compile() { kernel_->compile(); }

    /// Where a tensor's two parameters get their values.
    struct Binding {
        int buffer_index;
        int offset_index;
        int operand;
        std::uint64_t extra_bytes;
        std::size_t element_bytes;
        std::uint64_t bound_id;  // of the buffer last bound, 0 before the first
        std::uint64_t bound_offset;
    };
    const ProgramSource& source() const { return program_->source(); }
    const std::string& kernel() const { return kernel_->name(); }
    const NDRange& range() const { return range_; }
    std::span<const Binding> bindings() const { return bindings_; }
    /// Bits of the scalar parameter at `index`, in the lowest bytes.
    std::uint64_t scalar_bits(int index) const { return scalars_[static_cast<std::size_t>(index)]; }

  private:
    KernelCall& set(std::string_view name, const void* value, std::size_t bytes);

    std::shared_ptr<Program> program_;
    std::shared_ptr<Kernel> kernel_;
    NDRange range_;
    std::vector<Binding> bindings_;
    std::vector<bool> given_;
    std::vector<std::uint64_t> scalars_;  ///< by parameter
};

/// `groups` work-groups of `items` work-items.
NDRange group_range(std::int64_t groups, std::int64_t items);
/// The OpenCL C type that counts to `count`: divisions by 32 bits take a fraction of those by 64.
const char* count_type(std::uint64_t count);

/// A sequence of kernel calls.
class KernelLaunch : public Launch {
  public:
    KernelLaunch& add(KernelCall call);
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;
    std::span<const KernelCall> calls() const override { return calls_; }
    void compile() override {
        for (KernelCall& call : calls_) call.compile();
    }

  private:
    std::vector<KernelCall> calls_;
};

/// Host work: called with the operands in the same order.
class HostLaunch : public Launch {
  public:
    using Work = std::function<void(HostPool&, std::span<const BufferRef>)>;
    explicit HostLaunch(Work work) : work_(std::move(work)) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;

  private:
    Work work_;
};

}  // namespace dlprim
