// SPDX-License-Identifier: MIT
// bind_runtime_threads: a native kernel on each thread of the runtime binds it to a core.
#include "runtime/core_affinity.hpp"

#include "base/env.hpp"

#include <dlprim/log.hpp>

#include <map>
#include <mutex>
#include <vector>

#ifdef __linux__
#include <chrono>
#include <condition_variable>

#include <sched.h>
#include <unistd.h>
#endif

namespace dlprim {

#ifdef __linux__

namespace {

// A barrier for the native kernels of a device. Once all have arrived, each binds its own thread.
// If one of them does not arrive in time, none binds.
class Barrier {
  public:
    explicit Barrier(std::vector<int> cores) : cores_(std::move(cores)), caller_(gettid()) {}

    struct Token {  // the argument of a native kernel, which runtimes copy
        Barrier* barrier;
    };

    /// The body of a native kernel.
    static void CL_CALLBACK arrive(void* token) { static_cast<Token*>(token)->barrier->arrive(); }

    std::size_t bound() const { return bound_; }

  private:
    void arrive() {
        std::unique_lock lock(mutex_);
        // A runtime may also run kernels in the caller's thread, which must not be bound.
        if (gettid() == caller_) given_up_ = true;
        const std::size_t number = arrived_++;
        if (arrived_ == cores_.size()) all_.notify_all();
        const auto done = [&] { return given_up_ || arrived_ == cores_.size(); };
        // Long enough to wake sleeping threads on a busy machine.
        if (!all_.wait_for(lock, std::chrono::milliseconds(50), done)) given_up_ = true;
        if (given_up_) {
            all_.notify_all();
            return;
        }
        cpu_set_t mine;
        CPU_ZERO(&mine);
        CPU_SET(cores_[number], &mine);
        if (sched_setaffinity(0, sizeof(mine), &mine) == 0) ++bound_;
    }

    const std::vector<int> cores_;
    const pid_t caller_;
    std::mutex mutex_;
    std::condition_variable all_;
    std::size_t arrived_ = 0, bound_ = 0;
    bool given_up_ = false;
};

// The processors that the caller may run on. Empty if there are more than a cpu_set_t can hold.
std::vector<int> own_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    return cores;
}

template <typename T>
T device_fact(cl_device_id device, cl_device_info what) {
    T value{};
    return clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value
                                                                                       : T{};
}

// Command queues; the destructor waits for all work that was enqueued.
class Queues {
  public:
    cl_command_queue add(cl_context context, cl_device_id device) {
        all_.reserve(all_.size() + 1);
        all_.push_back(cl_make_queue(context, device, 0));
        return all_.back();
    }
    Queues() = default;
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;
    ~Queues() {
        for (const cl_command_queue queue : all_) {
            clFinish(queue);
            clReleaseCommandQueue(queue);
        }
    }

  private:
    std::vector<cl_command_queue> all_;
};

bool bind(cl_context context, cl_device_id device) {
    if ((device_fact<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) == 0 ||
        (device_fact<cl_device_exec_capabilities>(device, CL_DEVICE_EXECUTION_CAPABILITIES) &
         CL_EXEC_NATIVE_KERNEL) == 0)
        return false;
    const std::vector<int> cores = own_cores();
    const auto units = device_fact<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    // With one core there is nothing to choose, and with spare cores the system finds idle ones.
    if (units < 2 || cores.size() != units) return false;

    Barrier barrier(cores);
    Barrier::Token token{&barrier};
    {
        Queues queues;  // a single queue would run the kernels one after the other
        for (cl_uint i = 0; i < units; ++i) {
            const cl_command_queue queue = queues.add(context, device);
            cl_check(clEnqueueNativeKernel(queue, Barrier::arrive, &token, sizeof(token), 0,
                                           nullptr, nullptr, 0, nullptr, nullptr),
                     "running a native kernel");
            clFlush(queue);
        }
    }
    log(LogLevel::info, cat(barrier.bound(), " of the runtime's ", units,
                            " threads are bound to a core of their own"));
    return barrier.bound() == units;
}

}  // namespace

bool bind_runtime_threads(cl_context context, cl_device_id device) noexcept {
    static std::mutex mutex;
    static std::map<cl_device_id, bool> bound;
    try {
        if (env("DLPRIM_AFFINITY") == "0") return false;
        const std::lock_guard lock(mutex);
        const auto [known, first] = bound.try_emplace(device, false);
        if (first) known->second = bind(context, device);
        return known->second;
    } catch (const std::exception&) {
        return false;  // without it launches are slower, nothing else
    }
}

#else

bool bind_runtime_threads(cl_context, cl_device_id) noexcept {
    return false;
}

#endif

}  // namespace dlprim
