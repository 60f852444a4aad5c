// SPDX-License-Identifier: MIT
// fma_is_slow(): the times of two kernels that differ in fma() and mad() alone.
#include "runtime/fma_trial.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace dlprim {
namespace {

constexpr const char* probe_name = "probe/peak.cl";
constexpr std::size_t most_items = 4096;  // of 4096 multiply-adds each
/// Times below this are too short to tell anything. Some drivers compile a kernel at each launch.
constexpr double least_seconds = 0.02;
constexpr double slow = 3;

/// A kernel of the probe, which writes to memory of its own.
class Timed {
  public:
    Timed(cl_context context, cl_device_id device, cl_program program) : program_(program) {
        const cl_ulong offset = 0;
        cl_int code = CL_SUCCESS;
        kernel_ = clCreateKernel(program_, "probe", &code);
        if (code == CL_SUCCESS)
            memory_ = clCreateBuffer(context, CL_MEM_READ_WRITE, most_items * sizeof(float),
                                     nullptr, &code);
        if (code == CL_SUCCESS) code = clSetKernelArg(kernel_, 0, sizeof(memory_), &memory_);
        if (code == CL_SUCCESS) code = clSetKernelArg(kernel_, 1, sizeof(offset), &offset);
        if (code == CL_SUCCESS) queue_ = cl_make_queue(context, device, 0);
    }
    ~Timed() {
        if (queue_ != nullptr) clReleaseCommandQueue(queue_);
        if (memory_ != nullptr) clReleaseMemObject(memory_);
        if (kernel_ != nullptr) clReleaseKernel(kernel_);
        clReleaseProgram(program_);
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

    /// The seconds that `items` work-items take more than one.
    double seconds(std::size_t items) const { return least(items) - least(1); }

  private:
    double least(std::size_t items) const {
        double seconds = once(items);  // the first launch may compile
        for (int i = 0; i < 3; ++i) seconds = std::min(seconds, once(items));
        return seconds;
    }
    double once(std::size_t items) const {
        const std::size_t group = 1;
        float first = 0;
        const auto start = std::chrono::steady_clock::now();
        cl_check(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &items, &group, 0, nullptr,
                                        nullptr),
                 "a trial of fma()");
        cl_check(clEnqueueReadBuffer(queue_, memory_, CL_TRUE, 0, sizeof(first), &first, 0, nullptr,
                                     nullptr),
                 "a trial of fma()");
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    cl_program program_;
    cl_kernel kernel_ = nullptr;
    cl_mem memory_ = nullptr;
    cl_command_queue queue_ = nullptr;
};

/// Takes more work-items until their time can be told from that of a launch.
bool takes_longer(const Timed& fused, const Timed& apart) {
    for (std::size_t items = 4; items <= most_items; items *= 4)
        if (const double seconds = fused.seconds(items); seconds > least_seconds)
            return seconds > slow * apart.seconds(items);
    return false;
}

}  // namespace

bool fma_is_slow(const CompileTarget& target, cl_context context, cl_device_id device,
                 const std::function<cl_program(const ProgramSource&)>& build, bool tries) {
    cl_device_fp_config config = 0;
    clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(config), &config, nullptr);
    if ((config & CL_FP_FMA) != 0) return false;
    const std::string text = kernel_source(probe_name);
    const std::string key = cat(target.device_key(), "whether it emulates fma()\n", hash_hex(text));
    if (const auto known = target.disk().load(key)) return *known == "slow";
    if (!tries) return false;
    try {
        const auto timed = [&](const char* kind) {
            const std::string options = cat("-DLANES=4 -DCHAINS=4 -DSTEPS=256 -DFUSED=", kind);
            return Timed(context, device, build({probe_name, text, options}));
        };
        const bool is_slow = takes_longer(timed("1"), timed("0"));
        if (is_slow)
            log(LogLevel::info, cat("device ", target.device().str(),
                                    " emulates fma(); kernels that need its speed call mad()"));
        target.disk().save(key, is_slow ? "slow" : "fast");
        return is_slow;
    } catch (const Error& error) {
        log(LogLevel::info, cat("whether device ", target.device().str(),
                                " emulates fma() is not known: ", error.what()));
        return false;
    }
}

}  // namespace dlprim
