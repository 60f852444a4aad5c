// SPDX-License-Identifier: MIT
// Programs and kernels on OpenCL.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/kernel_parameters.hpp"
#include "runtime/launch_thread.hpp"
#include "runtime/opencl_builds.hpp"
#include "runtime/program.hpp"
#include "runtime/program_builds.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// Whether OpenCL objects must not be released any more, because the process ends and drivers clean
/// up in their own exit handlers.
bool opencl_gone() noexcept;

class OpenCLProgram;

/// The cl_kernel is made when the program is compiled. Arguments that are set earlier are stored
/// until then. Where the context has a LaunchThread, later ones are stored until the next launch,
/// which passes them to the driver.
class OpenCLKernel : public Kernel {
  public:
    OpenCLKernel(std::string name, const std::vector<KernelParameter>* parameters,
                 std::shared_ptr<const OpenCLProgram> program, std::size_t parts)
        : name_(std::move(name)),
          parameters_(parameters),
          program_(std::move(program)),
          parts_(parts) {}
    ~OpenCLKernel() override;

    const std::string& name() const override { return name_; }
    int index_of(std::string_view parameter) const override;
    int parameter_count() const override { return static_cast<int>(parameters_->size()); }
    void set(int index, const Buffer& buffer) override;
    void set(int index, const void* value, std::size_t bytes) override;
    void compile() override;

    /// How many parts a launch of it has (runtime/split_launch.hpp).
    std::size_t parts() const noexcept { return parts_; }
    /// Launches it at once, compiled if necessary, with the arguments that were set.
    void launch(cl_command_queue queue, const PartRange& range, cl_event* event);
    /// For a launch that is recorded: moves the arguments that were set since the last one to
    /// `into`. The kernel stays until the thread has carried out the record.
    void record(std::vector<std::byte>& into);
    /// On the LaunchThread: such a launch.
    void launch_recorded(cl_command_queue queue, const PartRange& range,
                         const std::vector<std::byte>& arguments);

  private:
    struct Argument {
        int index;
        std::size_t bytes;
        std::vector<std::byte> value;  // empty: local memory
    };
    /// An argument that is a struct, whose members are set one by one.
    struct StructArgument {
        int index;
        std::vector<std::byte> value;
        bool changed;
    };
    void set_argument(int index, const void* value, std::size_t bytes);
    void set_member(std::size_t parameter, const void* value, std::size_t bytes);
    void set_structs();
    void pass(int index, const void* value, std::size_t bytes);
    void pass_all(const std::vector<std::byte>& arguments);
    void enqueue(cl_command_queue queue, const PartRange& range, cl_event* event);
    /// Its name among the KernelTurns.
    const std::string& turn();

    cl_kernel kernel_ = nullptr;
    std::string name_;
    const std::vector<KernelParameter>* parameters_;  // lives in program_
    std::shared_ptr<const OpenCLProgram> program_;
    std::size_t parts_;
    std::vector<Argument> early_;  // arguments that were set before it was compiled
    std::vector<StructArgument> structs_;
    std::vector<std::byte> changes_;  // and those since the last launch, if there is a thread
    bool recorded_ = false;           // whether a launch was ever recorded
    std::string turn_;                // empty before the first one
};

/// A program that is compiled when its handle is first requested, possibly by several threads at
/// once.
class OpenCLProgram : public Program,
                      public PendingProgram,
                      public std::enable_shared_from_this<OpenCLProgram> {
  public:
    /// `builds`, which must outlive this object, makes the cl_program. It is not called again after
    /// it has succeeded or thrown Error(build). `thread` may be null, and outlives this object.
    /// `launch_seconds` is the launch_limit().
    OpenCLProgram(const OpenCLBuilds& builds, const ProgramSource& source, LaunchThread* thread,
                  double launch_seconds);
    ~OpenCLProgram() override;
    std::unique_ptr<Kernel> kernel(std::string_view name) const override;
    /// Throws Error(build), also on every later call.
    cl_program handle() const;
    /// The thread by which kernels of the program may be launched, or nullptr.
    LaunchThread* thread() const noexcept { return thread_; }
    bool takes_turns() const noexcept { return builds_.takes_turns(); }

    bool compiled() const noexcept override { return program_.load() != nullptr; }
    void compile_now() const override { handle(); }
    const ProgramSource& text() const noexcept override { return source(); }
    const std::string& text_hash() const override;
    const CompileTarget* target() const override;
    const CompileTarget* ahead_target() const override;
    void compiled_ahead() const noexcept override { ahead_ = true; }
    /// For expect_launch() and expected_launches() (runtime/expected_launches.hpp).
    void expect(std::string_view kernel, const std::array<std::size_t, 3>& group) const;
    std::string expected() const;

  private:
    const OpenCLBuilds& builds_;
    LaunchThread* thread_;
    double launch_seconds_;
    KernelSignatures parameters_;
    mutable std::once_flag hashed_;
    mutable std::string text_hash_;
    mutable std::atomic<cl_program> program_{nullptr};  // set once
    mutable std::atomic<bool> ahead_{false};
    mutable std::mutex mutex_;  // protects the member below
    mutable std::exception_ptr failed_;
    mutable std::mutex expected_mutex_;  // protects the member below
    mutable std::set<std::pair<std::string, std::array<std::size_t, 3>>> expected_;
};

}  // namespace dlprim
