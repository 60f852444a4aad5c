// SPDX-License-Identifier: MIT
// OpenCLBuilds makes the programs of one device: it compiles their text, or loads binaries from the
// disk.
#pragma once

#include "runtime/binary_cache.hpp"
#include "runtime/cl.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/compiler_survey.hpp"
#include "runtime/devices.hpp"
#include "runtime/math_survey.hpp"
#include "runtime/pocl_declarations.hpp"
#include "runtime/program.hpp"
#include "runtime/speed_trials.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace dlprim {

/// Several threads may use one object. The cl_context and the counters must outlive it.
class OpenCLBuilds : public CompileTarget {
  public:
    /// `compiled` is called after every compilation, on the thread that compiled. `serves`: this
    /// process compiles for another one, and may be ended by the compiler.
    OpenCLBuilds(const OpenCLDevice& device, cl_context context, BinaryCache disk,
                 Counters& counters, std::function<void()> compiled = {}, bool serves = false);

    /// Equal programs have equal keys. The binary cache stores a program under its key.
    std::string key_of(const ProgramSource& source) const;
    /// Loads the program from the disk, or compiles it and saves it there. The caller releases it.
    /// If another process has compiled it for this one (`ahead`), loading it counts as compiling.
    /// Throws Error(build).
    cl_program make(const ProgramSource& source, bool ahead = false) const;
    /// Whether the disk has a file for this program.
    bool keeps(const ProgramSource& source) const;
    /// The same without trying functions: false if one that the program calls is unknown.
    bool surely_keeps(const ProgramSource& source) const;

    /// Writes a program that was launched, and what is known of functions, to a folder of
    /// shipped programs. Throws Error(io).
    void write(const ProgramSource& source, cl_program program, const BinaryCache& to) const;

    const DeviceInfo& device() const noexcept override { return info_; }
    const std::string& device_key() const noexcept override { return device_key_; }
    const BinaryCache& disk() const noexcept override { return disk_; }
    /// Whether kernels are launched in turns (runtime/kernel_turns.hpp).
    bool takes_turns() const noexcept { return takes_turns_; }
    std::uint64_t device_memory() const noexcept override { return device_memory_; }
    BackgroundCompiles* background() const override {
        return background_ ? background_() : nullptr;
    }
    /// Says where these are. Called before the first program is built.
    void set_background(std::function<BackgroundCompiles*()> find) {
        background_ = std::move(find);
    }
    bool compiles_at_launch() const noexcept override { return driver_keeps_; }
    /// Whether work-items are the lanes of the driver's vectors. May run kernels.
    bool vectors_are_slow() const { return dlprim::vectors_are_slow(trial_device()); }
    /// Which of the driver's functions are wrong. Programs are built with our texts in their place.
    MathSurvey& math() const noexcept { return math_; }

  private:
    /// Made when it is first asked for, which may start a process.
    const CompilerSurvey& survey() const;
    /// Compiles a new program in another process first, where the compiler may end its process.
    /// Returns whether it did. Throws Error(build) where that process was ended.
    bool shield(const ProgramSource& source) const;
    /// Builds the program of the survey of functions, without the cache.
    cl_program try_functions(const ProgramSource& source) const;
    /// key_of() and make() of a program that has our texts in front.
    std::string key_of_corrected(const ProgramSource& source) const;
    cl_program make_corrected(const ProgramSource& source, bool ahead) const;
    /// Found when it is first asked for, which may run kernels.
    bool fma_is_slow() const;
    TrialDevice trial_device() const;
    /// What this device needs beside a program's own options.
    std::string device_options(const ProgramSource& source) const;
    cl_program from_binary(const ProgramSource& source, const std::string& binary) const;
    /// Held while the driver compiles, where it must compile one program at a time.
    std::unique_lock<std::mutex> alone() const;
    cl_program from_source(const ProgramSource& source) const;
    /// What the driver makes of a text. The caller releases the program, also one that is not
    /// built.
    struct Built {
        cl_program program = nullptr;
        cl_int code = CL_SUCCESS;  ///< of the build
    };
    Built build(const ProgramSource& source) const;
    /// Whether kernels are built with their bodies apart (runtime/kernel_bodies.hpp).
    bool splits_kernels() const { return is_pocl_ && info_.kind == DeviceKind::cpu; }
    /// nullptr where programs need no declarations in front.
    const PoclDeclarations* declarations() const;
    cl_program with_instructions(const ProgramSource& source, cl_program marked) const;
    std::string log_of(cl_program program) const;
    [[noreturn]] void build_failed(cl_program program, const ProgramSource& source,
                                   cl_int code) const;
    std::string binary_of(cl_program program) const;

    cl_device_id device_;
    cl_context context_;
    BinaryCache disk_;
    Counters& counters_;
    std::function<void()> compiled_;
    bool serves_;
    std::function<BackgroundCompiles*()> background_;
    mutable std::once_flag surveyed_;
    mutable CompilerSurvey survey_;
    mutable CompileShield shield_{*this};
    mutable std::once_flag fma_tried_;
    mutable bool fma_is_slow_ = false;
    DeviceInfo info_;
    std::string device_key_;
    const char* exact_division_;  ///< an option for all programs, or ""
    std::uint64_t device_memory_;
    bool is_pocl_;
    /// Whether the driver has a cache on the disk and our binaries would only cost time. PoCL
    /// compiles each kernel a second time, for any local size, when it is asked for a binary.
    bool driver_keeps_;
    bool builds_alone_;  ///< whether the compiler crashes where two threads are in it
    bool takes_turns_;
    mutable MathSurvey math_;
};

/// Returns the device_key() that OpenCLBuilds has for a device. Devices of a class have the same
/// (runtime/shipped_programs.hpp).
std::string device_key_of(const OpenCLDevice& device);

}  // namespace dlprim
