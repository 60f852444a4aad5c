// SPDX-License-Identifier: MIT
// Programs and kernels on OpenCL.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/program.hpp"

#include <map>
#include <memory>
#include <string>

namespace dlprim {

/// Whether the process is past the point where OpenCL objects may be released (drivers tear
/// themselves down in their own exit handlers).
bool opencl_gone() noexcept;

class OpenCLKernel : public Kernel {
  public:
    OpenCLKernel(cl_kernel kernel, std::string name, const std::vector<std::string>* parameters,
                 std::shared_ptr<const Program> program)
        : kernel_(kernel),
          name_(std::move(name)),
          parameters_(parameters),
          program_(std::move(program)) {}
    ~OpenCLKernel() override;

    const std::string& name() const override { return name_; }
    int index_of(std::string_view parameter) const override;
    int parameter_count() const override { return static_cast<int>(parameters_->size()); }
    void set(int index, const Buffer& buffer) override;
    void set(int index, const void* value, std::size_t bytes) override;
    cl_kernel handle() const { return kernel_; }

  private:
    cl_kernel kernel_;
    std::string name_;
    const std::vector<std::string>* parameters_;  // lives in program_
    std::shared_ptr<const Program> program_;
};

class OpenCLProgram : public Program, public std::enable_shared_from_this<OpenCLProgram> {
  public:
    /// Takes over a built cl_program.
    OpenCLProgram(cl_program program, const ProgramSource& source);
    ~OpenCLProgram() override;
    std::unique_ptr<Kernel> kernel(std::string_view name) const override;
    cl_program handle() const { return program_; }

  private:
    cl_program program_;
    std::map<std::string, std::vector<std::string>, std::less<>> parameters_;
};

}  // namespace dlprim
