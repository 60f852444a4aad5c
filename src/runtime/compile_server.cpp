// SPDX-License-Identifier: MIT
// serve_compiling: opens the device, then compiles one program after another.
#include "runtime/compile_server.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/cl.hpp"
#include "runtime/compiler_survey.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/opencl_builds.hpp"
#include "runtime/trial_launches.hpp"

#include <dlprim/version.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace dlprim {
namespace {

constexpr const char* speaker = "dlprim_compile " DLPRIM_VERSION;

/// Ends this process when the other end of its socket is closed. If the other process has forked, a
/// copy of that end may stay open. So this process also ends when its parent changes.
void end_with_parent(int socket, pid_t parent) {
    for (;;) {
        pollfd entry{socket, POLLRDHUP, 0};
        const int found = ::poll(&entry, 1, 1000);
        if ((found > 0 && entry.revents != 0) || ::getppid() != parent) ::_exit(0);
    }
}

/// Returns a device with this key, preferably the one with this id, or null.
const OpenCLDevice* find_device(const std::string& id, const std::string& key) {
    const OpenCLDevice* found = nullptr;
    for (const OpenCLDevice& device : opencl_devices()) {
        if (device_key_of(device) != key) continue;
        if (found == nullptr || device.info.id == id) found = &device;
    }
    return found;
}

/// An opened device with no more than a compiler needs.
class Compiler {
  public:
    Compiler(const OpenCLDevice& device, const std::string& folder)
        : context_(open(device)),
          builds_(device, context_, BinaryCache(folder), counters_, {}, true),
          launches_(context_, static_cast<cl_device_id>(device.device)) {}
    ~Compiler() { clReleaseContext(context_); }
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    std::string_view compile(const ProgramSource& source, const std::string& launches) {
        try {
            const cl_program made = builds_.make(source);
            if (builds_.compiles_at_launch()) {
                if (!launches_.launch_all(made, source, launches)) ::_exit(0);
                clReleaseProgram(made);
                return builds_.keeps(source) ? answer::made : answer::not_kept;
            }
            if (wants_launches(builds_, source)) launch_before_keeping(made, source);
            clReleaseProgram(made);
            // Now load it as the other process will. A driver that assembles what it loads keeps
            // the result in its own cache, where the other process then finds it.
            const std::uint64_t before = counted(counters_.cache_hits);
            const cl_program loaded = builds_.make(source);
            make_kernels(loaded);
            clReleaseProgram(loaded);
            return counted(counters_.cache_hits) > before ? answer::made : answer::not_kept;
        } catch (const Error&) {
            return answer::failed;  // the other process compiles it and reports why
        }
    }

  private:
    static cl_context open(const OpenCLDevice& device) {
        const auto id = static_cast<cl_device_id>(device.device);
        cl_int code = CL_SUCCESS;
        const cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
        cl_check(code, "opening device ", device.info.str());
        return context;
    }
    /// No other process finds the program before its kernels have run. A kernel that does not end,
    /// or ends this process, leaves no file.
    void launch_before_keeping(cl_program made, const ProgramSource& source) {
        const std::string key = builds_.key_of(source);
        const auto binary = builds_.disk().load(key);
        std::error_code code;
        std::filesystem::remove(builds_.disk().file(key), code);
        if (!launches_.launch_all(made, source)) ::_exit(0);
        if (binary) builds_.disk().save(key, *binary);
    }
    static void make_kernels(cl_program program) {
        cl_uint count = 0;
        if (clCreateKernelsInProgram(program, 0, nullptr, &count) != CL_SUCCESS) return;
        std::vector<cl_kernel> kernels(count);
        if (clCreateKernelsInProgram(program, count, kernels.data(), nullptr) != CL_SUCCESS) return;
        for (const cl_kernel kernel : kernels) clReleaseKernel(kernel);
    }

    cl_context context_;
    Counters counters_;
    OpenCLBuilds builds_;
    TrialLaunches launches_;
};

std::unique_ptr<Compiler> greeted(const std::optional<Message>& message) {
    if (!message || message->size() != 4 || message->at(0) != speaker) return nullptr;
    try {
        // The other process may have set its cache folder by a call, which no variable tells.
        const auto folder = std::filesystem::path(message->at(3)).parent_path();
        override_env({{"DLPRIM_CACHE_DIR", folder.string()}}, "the cache folder");
        const OpenCLDevice* device = find_device(message->at(1), message->at(2));
        if (device == nullptr) return nullptr;
        return std::make_unique<Compiler>(*device, message->at(3));
    } catch (const Error&) {
        return nullptr;
    }
}

}  // namespace

Message greeting(const CompileTarget& target) {
    return {speaker, target.device().id, target.device_key(), target.disk().folder().string()};
}

void serve_compiling(int socket) {
    const pid_t parent = ::getppid();
    std::thread(end_with_parent, socket, parent).detach();
    MessageSocket requests(socket);
    const auto compiler = greeted(requests.receive());
    requests.send({std::string(compiler ? answer::ready : answer::refused)});
    while (compiler) {
        const auto request = requests.receive();
        if (!request || request->size() != 4) break;
        const ProgramSource source{request->at(0), request->at(2), request->at(1)};
        if (!requests.send({std::string(compiler->compile(source, request->at(3)))})) break;
    }
    // Skip exit handlers: drivers have nothing left to do, and some hang in theirs.
    ::_exit(0);
}

}  // namespace dlprim
