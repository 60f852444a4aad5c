// SPDX-License-Identifier: MIT
// Programs and kernels on OpenCL.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/opencl_builds.hpp"
#include "runtime/program.hpp"
#include "runtime/program_builds.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlprim {

/// Whether OpenCL objects must not be released any more, because the process ends and drivers clean
/// up in their own exit handlers.
bool opencl_gone() noexcept;

class OpenCLProgram;

/// The cl_kernel is made when the program is compiled. Arguments that are set earlier are stored
/// until then.
class OpenCLKernel : public Kernel {
  public:
    OpenCLKernel(std::string name, const std::vector<std::string>* parameters,
                 std::shared_ptr<const OpenCLProgram> program)
        : name_(std::move(name)), parameters_(parameters), program_(std::move(program)) {}
    ~OpenCLKernel() override;

    const std::string& name() const override { return name_; }
    int index_of(std::string_view parameter) const override;
    int parameter_count() const override { return static_cast<int>(parameters_->size()); }
    void set(int index, const Buffer& buffer) override;
    void set(int index, const void* value, std::size_t bytes) override;
    void compile() override;
    /// Returns the kernel, compiled if necessary.
    cl_kernel handle() {
        if (kernel_ == nullptr) compile();
        return kernel_;
    }

  private:
    struct Argument {
        int index;
        std::size_t bytes;
        std::vector<std::byte> value;  // empty: local memory
    };
    cl_kernel kernel_ = nullptr;
    std::string name_;
    const std::vector<std::string>* parameters_;  // lives in program_
    std::shared_ptr<const OpenCLProgram> program_;
    std::vector<Argument> early_;  // arguments that were set before it was compiled
};

/// A program that is compiled when its handle is first requested, possibly by several threads at
/// once.
class OpenCLProgram : public Program,
                      public PendingProgram,
                      public std::enable_shared_from_this<OpenCLProgram> {
  public:
    /// `builds`, which must outlive this object, makes the cl_program. It is not called again after
    /// it has succeeded or thrown Error(build).
    OpenCLProgram(const OpenCLBuilds& builds, const ProgramSource& source);
    ~OpenCLProgram() override;
    std::unique_ptr<Kernel> kernel(std::string_view name) const override;
    /// Throws Error(build), also on every later call.
    cl_program handle() const;

    bool compiled() const noexcept override { return program_.load() != nullptr; }
    void compile_now() const override { handle(); }
    const ProgramSource& text() const noexcept override { return source(); }
    const CompileTarget* target() const override;
    void compiled_ahead() const noexcept override { ahead_ = true; }

  private:
    const OpenCLBuilds& builds_;
    std::map<std::string, std::vector<std::string>, std::less<>> parameters_;
    mutable std::atomic<cl_program> program_{nullptr};  // set once
    mutable std::atomic<bool> ahead_{false};
    mutable std::mutex mutex_;  // protects the member below
    mutable std::exception_ptr failed_;
};

}  // namespace dlprim
