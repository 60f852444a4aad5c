// SPDX-License-Identifier: MIT
// RecordedProgram: a program that is planned with, and never compiled or launched.
#pragma once

#include "runtime/kernel_parameters.hpp"
#include "runtime/program.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// A kernel that is never launched: it knows the parameters of its text.
class RecordedKernel : public Kernel {
  public:
    RecordedKernel(std::string name, std::vector<KernelParameter> parameters)
        : name_(std::move(name)), parameters_(std::move(parameters)) {}
    const std::string& name() const override { return name_; }
    int index_of(std::string_view parameter) const override {
        return parameter_index(parameters_, name_, parameter);
    }
    int parameter_count() const override { return static_cast<int>(parameters_.size()); }
    void set(int, const Buffer&) override {}
    void set(int, const void*, std::size_t) override {}
    void compile() override {}

  private:
    std::string name_;
    std::vector<KernelParameter> parameters_;
};

class RecordedProgram : public Program {
  public:
    using Program::Program;
    std::unique_ptr<Kernel> kernel(std::string_view name) const override {
        const KernelSignatures all = kernel_signatures(source().source);
        return std::make_unique<RecordedKernel>(std::string(name),
                                                kernel_named(all, name, source().name)->second);
    }
};

}  // namespace dlprim
