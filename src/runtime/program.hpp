// SPDX-License-Identifier: MIT
// Program and Kernel: compiled OpenCL code, whose arguments are set by the names in its source.
#pragma once

#include "runtime/buffer.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// What to compile. Names of arguments are read from the source text without a preprocessor, so
/// signatures of kernels must not contain preprocessor conditions or macros. Write them as `kernel
/// [__attribute__((...))] void NAME(type name, ...)`.
struct ProgramSource {
    std::string name;     ///< for messages: "conv2d/blocked.cl"
    std::string source;   ///< OpenCL C with includes resolved (kernel_source())
    std::string options;  ///< "-DTILE=8 -DRELU=1"; part of the cache key
};

/// An option for CPU kernels that sum products: numbers below 1.2e-38 count as zero, which OpenCL
/// allows. Gradients become that small once a network has learnt its examples, and processors take
/// hundreds of cycles for a vector that contains such a number.
inline constexpr const char* flush_subnormals = "-cl-denorms-are-zero";

struct NDRange {
    int dims = 1;
    std::array<std::size_t, 3> global{1, 1, 1};
    std::array<std::size_t, 3> local{0, 0, 0};  ///< all zero: the driver chooses
};

/// A cl_kernel of its own, to be used by one thread at a time. Arguments keep their values between
/// launches.
class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual const std::string& name() const = 0;
    /// The position of the parameter called `parameter`. If there is none, throws
    /// Error(invalid_argument), which names the kernel's parameters.
    virtual int index_of(std::string_view parameter) const = 0;
    virtual int parameter_count() const = 0;
    virtual void set(int index, const Buffer& buffer) = 0;
    virtual void set(int index, const void* value, std::size_t bytes) = 0;
    /// Compiles the kernel's program if that was postponed (BuildsLater), as the first launch
    /// would. Throws Error(build).
    virtual void compile() = 0;
};

class Program {
  public:
    explicit Program(ProgramSource source) : source_(std::move(source)) {}
    virtual ~Program() = default;
    /// The source that it was compiled from.
    const ProgramSource& source() const noexcept { return source_; }
    virtual std::unique_ptr<Kernel> kernel(std::string_view name) const = 0;

  private:
    ProgramSource source_;
};

/// While it lives, programs that its thread requests by ContextImpl::build are compiled only when
/// they are needed. Some kernels run only as a part of another program.
class BuildsLater {
  public:
    BuildsLater() { ++depth_; }
    ~BuildsLater() { --depth_; }
    BuildsLater(const BuildsLater&) = delete;
    BuildsLater& operator=(const BuildsLater&) = delete;
    static bool wanted() noexcept { return depth_ > 0; }

  private:
    static thread_local int depth_;
};

/// The text of kernels/<path>, as embedded in the library or read from the folder
/// DLPRIM_KERNELS_DIR. `#include "common/x.clh"` lines are resolved (each file once). Throws
/// Error(not_found).
std::string kernel_source(std::string_view path);

}  // namespace dlprim
