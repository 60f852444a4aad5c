// SPDX-License-Identifier: MIT
// Trials of speed: the times of two forms of one kernel that compute as much.
#include "runtime/speed_trials.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace dlprim {
namespace {

constexpr const char* probe_name = "probe/speed.cl";
constexpr const char* doing = "a trial of speed";
constexpr std::size_t most_items = 4096;
/// Times below this are too short to tell anything. Some drivers compile a kernel at each launch.
constexpr double least_seconds = 0.02;
constexpr double slow = 3;

/// A form of the kernel.
struct Form {
    const char* options;
    std::size_t group;  ///< work-items of a work-group; the unit in which work is counted
};

/// A kernel of the probe, which writes to memory of its own.
class Timed {
  public:
    Timed(const TrialDevice& where, const Form& form)
        : group_(form.group),
          program_(where.build({probe_name, kernel_source(probe_name), form.options})) {
        cl_int code = CL_SUCCESS;
        kernel_ = clCreateKernel(program_, "probe", &code);
        if (code == CL_SUCCESS)
            memory_ = clCreateBuffer(where.context, CL_MEM_READ_WRITE,
                                     most_items * group_ * sizeof(float), nullptr, &code);
        if (code == CL_SUCCESS) code = clSetKernelArg(kernel_, 0, sizeof(memory_), &memory_);
        if (code == CL_SUCCESS) queue_ = cl_make_queue(where.context, where.device, 0);
    }
    ~Timed() {
        if (queue_ != nullptr) clReleaseCommandQueue(queue_);
        if (memory_ != nullptr) clReleaseMemObject(memory_);
        if (kernel_ != nullptr) clReleaseKernel(kernel_);
        clReleaseProgram(program_);
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

    /// The seconds that `groups` work-groups take more than one.
    double seconds(std::size_t groups) const { return least(groups) - least(1); }

  private:
    double least(std::size_t groups) const {
        double seconds = once(groups);  // the first launch may compile
        for (int i = 0; i < 3; ++i) seconds = std::min(seconds, once(groups));
        return seconds;
    }
    double once(std::size_t groups) const {
        const std::size_t items = groups * group_;
        float first = 0;
        const auto start = std::chrono::steady_clock::now();
        cl_check(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &items, &group_, 0, nullptr,
                                        nullptr),
                 doing);
        cl_check(clEnqueueReadBuffer(queue_, memory_, CL_TRUE, 0, sizeof(first), &first, 0, nullptr,
                                     nullptr),
                 doing);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    std::size_t group_;
    cl_program program_;
    cl_kernel kernel_ = nullptr;
    cl_mem memory_ = nullptr;
    cl_command_queue queue_ = nullptr;
};

/// Takes more work-groups until their time can be told from that of a launch.
bool takes_longer(const Timed& one, const Timed& other) {
    for (std::size_t groups = 4; groups <= most_items; groups *= 4)
        if (const double seconds = one.seconds(groups); seconds > least_seconds)
            return seconds > slow * other.seconds(groups);
    return false;
}

/// `is`: what a device does if `one` takes longer than `other`, for the log and the cache.
bool is_slow(const TrialDevice& where, const char* is, const Form& one, const Form& other) {
    const CompileTarget& target = where.target;
    const std::string key =
        cat(target.device_key(), "whether it ", is, '\n', hash_hex(kernel_source(probe_name)));
    if (const auto known = target.disk().load(key)) return *known == "slow";
    if (!where.tries) return false;
    try {
        const bool longer = takes_longer({where, one}, {where, other});
        if (longer) log(LogLevel::info, cat("device ", target.device().str(), ' ', is));
        target.disk().save(key, longer ? "slow" : "fast");
        return longer;
    } catch (const Error& error) {
        log(LogLevel::info, cat("whether device ", target.device().str(), ' ', is,
                                " is not known: ", error.what()));
        return false;
    }
}

}  // namespace

bool fma_is_slow(const TrialDevice& where) {
    cl_device_fp_config config = 0;
    clGetDeviceInfo(where.device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(config), &config, nullptr);
    if ((config & CL_FP_FMA) != 0) return false;
    return is_slow(where, "emulates fma()", {"-DLANES=4 -DCALL=fma", 1},
                   {"-DLANES=4 -DCALL=mad", 1});
}

bool vectors_are_slow(const TrialDevice& where) {
    cl_uint native = 1;
    clGetDeviceInfo(where.device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(native), &native,
                    nullptr);
    if (native > 1) return false;
    return is_slow(where, "wants many work-items in place of vectors", {"-DLANES=16 -DCALL=mad", 1},
                   {"-DLANES=1 -DCALL=mad", 16});
}

}  // namespace dlprim
