// SPDX-License-Identifier: MIT
// An opened OpenCL device: memory, its programs, each made once, and a clean end.
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/cl.hpp"
#include "runtime/compile_ahead.hpp"
#include "runtime/core_affinity.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/huge_pages.hpp"
#include "runtime/instruction_probe.hpp"
#include "runtime/kernel_turns.hpp"
#include "runtime/memory.hpp"
#include "runtime/opencl_builds.hpp"
#include "runtime/opencl_event.hpp"
#include "runtime/opencl_program.hpp"
#include "runtime/opencl_queue.hpp"
#include "runtime/opencl_transfer.hpp"
#include "runtime/program_builds.hpp"
#include "runtime/program_memo.hpp"
#include "runtime/shipped_programs.hpp"
#include "runtime/split_launch.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace dlprim {
namespace {

class OpenCLContext;

// All live contexts. At the end of the process, their work is awaited while drivers still function.
struct Live {
    std::mutex mutex;
    std::set<OpenCLContext*> contexts;
    std::atomic<bool> gone{false};    // drivers must not be called any more
    std::atomic<bool> forked{false};  // this process is a fork() of the one that opened them
};

Live& live() {
    static Live* instance = new Live;
    return *instance;
}

class OpenCLBuffer : public Buffer {
  public:
    /// Takes ownership of `memory`. `account` (may be null) counts its bytes. `thread` (may be
    /// null) may have launches that use it. `zeros`: is_new_zeros().
    OpenCLBuffer(std::uint64_t bytes, cl_mem memory, Gauge* account, LaunchThread* thread,
                 bool zeros = false)
        : Buffer(bytes, nullptr, memory), account_(account), thread_(thread), zeros_(zeros) {
        if (account_ != nullptr)
            account_->add(bytes);
        else
            set_foreign();
    }
    ~OpenCLBuffer() override {
        if (account_ != nullptr) account_->remove(bytes());
        if (opencl_gone()) return;
        if (thread_ != nullptr)
            thread_->release(static_cast<cl_mem>(handle()));
        else
            clReleaseMemObject(static_cast<cl_mem>(handle()));
    }
    bool zeros() const noexcept { return zeros_; }

  private:
    Gauge* account_;
    LaunchThread* thread_;
    bool zeros_;
};

/// From this size on, tensors in memory that the host shares are mapped and not copied by the
/// driver (docs/results/2026-11-29-small-devices.md).
constexpr std::uint64_t mapped_bytes = 4 << 20;

/// Whether eager calls leave their launches to a thread. A processor's own runtime needs all cores,
/// and its launches cost little.
bool launches_by_thread(DeviceKind kind) {
    if (const std::optional<bool> wanted = env_flag("DLPRIM_LAUNCH_THREAD")) return *wanted;
    cpu_set_t cores;
    return kind == DeviceKind::gpu && sched_getaffinity(0, sizeof(cores), &cores) == 0 &&
           CPU_COUNT(&cores) >= 4;
}

/// launch_limit() as far as the driver states one. NVIDIA's tells of a display's watchdog.
double watchdog_limit(cl_device_id device) {
    constexpr cl_device_info kernel_exec_timeout = 0x4005;  // CL_DEVICE_KERNEL_EXEC_TIMEOUT_NV
    cl_bool watched = CL_FALSE;
    const cl_int code =
        clGetDeviceInfo(device, kernel_exec_timeout, sizeof(watched), &watched, nullptr);
    return code == CL_SUCCESS && watched == CL_TRUE ? 0.5 : 0;
}

class OpenCLContext : public PooledContext {
  public:
    OpenCLContext(const OpenCLDevice& device, const OpenCLObjects& given);
    ~OpenCLContext() override;

    std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) override;
    Queue& queue() override { return *queue_; }
    std::shared_ptr<Program> build(const ProgramSource& source) override;
    void* cl_context_handle() const override { return context_; }
    void* cl_device_handle() const override { return device_; }
    void* cl_queue_handle() const override {
        queue_->stop_recording();
        return queue_->handle();
    }
    std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to, std::uint64_t byte_offset,
                                         std::uint64_t bytes) override {
        return make_opencl_feed(transfer_home(), std::move(to), byte_offset, bytes);
    }
    std::unique_ptr<Readback> make_readback(std::uint64_t bytes) override {
        return make_opencl_readback(transfer_home(), bytes);
    }
    std::shared_ptr<EventImpl> record(EventOptions options) override {
        return record_opencl_event(transfer_home(), options);
    }
    std::shared_ptr<std::byte> make_pinned(std::uint64_t bytes) override {
        return make_opencl_pinned(transfer_home(), bytes);
    }
    void drain() noexcept override { queue_->drain(); }
    std::size_t write_programs(const BinaryCache& to) {
        std::size_t written = 0;
        programs_.for_each([&](const std::shared_ptr<OpenCLProgram>& program) {
            if (!program->compiled()) return;
            builds_->write(program->source(), program->handle(), to);
            ++written;
        });
        return written;
    }
    /// Sets the traits that can only be found by running something.
    void probe() {
        if (traits_.wide_vectors && builds_->vectors_are_slow()) {
            traits_.wide_vectors = false;
            traits_.vector_width = 1;
        }
        probe_matrix_units();
        // Engines for devices with wide vectors do not use sub-groups.
        if (traits_.subgroup_size != 0 && !traits_.wide_vectors &&
            !subgroups_work(*this, traits_.subgroup_size))
            traits_.subgroup_size = 0;
    }

  protected:
    std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) override;
    bool held_elsewhere(const Buffer& memory) override;

  private:
    /// Tests each type of operands separately.
    void probe_matrix_units() {
        const bool halves = std::exchange(traits_.matrix_fp16, false);
        const bool bfloats = std::exchange(traits_.matrix_bf16, false);
        if (traits_.wgmma) {
            traits_.matrix_fp16 = halves && wgmma_works(*this, DType::f16);
            traits_.matrix_bf16 = bfloats && wgmma_works(*this, DType::bf16);
            traits_.wgmma = traits_.matrix_fp16 || traits_.matrix_bf16;
        }
        // The warp instructions are used only where warpgroup instructions are missing.
        const bool try_mma = traits_.mma && !traits_.wgmma;
        std::uint64_t bytes = std::exchange(traits_.mma_local_bytes, 0);
        const auto mma_works = [&](DType type) {
            const std::uint64_t found = mma_local_bytes(*this, bytes, type);
            if (found == 0) return false;
            // The next type is tested with at most this much, so the result holds for both types.
            traits_.mma_local_bytes = bytes = found;
            return true;
        };
        if (try_mma) {
            traits_.matrix_fp16 = halves && mma_works(DType::f16);
            traits_.matrix_bf16 = bfloats && mma_works(DType::bf16);
        }
        traits_.mma = traits_.mma_local_bytes > 0;
    }
    TransferHome transfer_home() { return {shared_from_this(), context_, *queue_}; }

    cl_device_id device_;
    cl_context context_ = nullptr;
    std::unique_ptr<OpenCLQueue> queue_;
    std::optional<OpenCLBuilds> builds_;
    ProgramMemo<std::shared_ptr<OpenCLProgram>> programs_;
};

// Waits for all work, then forbids releases. Exit handlers run in reverse order of registration. So
// this one is registered after a driver is first used, and again after its compiler is first used:
// PoCL compiles in its worker threads, which must not outlive the static variables of its compiler.
void at_exit() {
    Live& all = live();
    if (all.forked) return;
    const std::lock_guard lock(all.mutex);
    for (OpenCLContext* context : all.contexts) context->drain();
    all.gone = true;
}

void end_after_compiler() {
    static std::once_flag once;
    std::call_once(once, [] { std::atexit(at_exit); });
}

// Makes a context for one device, or retains the one that is given.
cl_context context_for(const OpenCLDevice& device, void* given, const std::string& name) {
    if (given != nullptr) {
        const auto context = static_cast<cl_context>(given);
        cl_check(clRetainContext(context), "keeping the cl_context of device ", name);
        return context;
    }
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(device.platform), 0};
    const auto id = static_cast<cl_device_id>(device.device);
    cl_int code = CL_SUCCESS;
    const cl_context context = clCreateContext(properties, 1, &id, nullptr, nullptr, &code);
    cl_check(code, "opening device ", name);
    return context;
}

// A fork() leaves a driver's threads in the parent, so calls in a child may wait forever. Therefore
// a child releases nothing. Some drivers wait, when the child ends, for work that was running at
// the fork, so all work is finished before it.
void part_at_forks() {
    const auto wait_for_work = [] {
        Live& all = live();
        all.mutex.lock();
        if (all.gone) return;
        for (OpenCLContext* context : all.contexts) context->drain();
    };
    const auto go_on = [] { live().mutex.unlock(); };
    const auto let_go = [] {
        live().forked = live().gone = true;
        live().mutex.unlock();
    };
    pthread_atfork(wait_for_work, go_on, let_go);
}

OpenCLContext::OpenCLContext(const OpenCLDevice& device, const OpenCLObjects& given)
    : device_(static_cast<cl_device_id>(device.device)) {
    info_ = device.info;
    traits_ = device.traits;
    lower_traits(traits_);
    context_ = context_for(device, given.context, info_.str());
    try {
        queue_ = std::make_unique<OpenCLQueue>(context_, device_, counters_,
                                               static_cast<cl_command_queue>(given.queue));
        if (needs_kernel_turns(device.platform_version)) queue_->take_turns();
        if (env_flag("DLPRIM_SYNC").value_or(false)) queue_->wait_for_each();
        if (given.queue == nullptr && launches_by_thread(info_.kind)) queue_->start_thread();
        builds_.emplace(device, context_, BinaryCache::from_environment(), counters_,
                        end_after_compiler);
        queue_->set_crew([this] { return lasting_crew(*builds_, pool().threads()); });
        builds_->set_background([this] {
            PutOffCalls* const calls = queue_->put_off();
            return calls != nullptr ? &calls->compiles() : nullptr;
        });
    } catch (...) {
        queue_.reset();
        clReleaseContext(context_);
        throw;
    }
    queue_->limit_launches(lower_launch_limit(watchdog_limit(device_)));
    if (traits_.unified_memory) queue_->map_from(mapped_bytes);
    traits_.own_cores = bind_runtime_threads(context_, device_);
    static std::once_flag opened;
    std::call_once(opened, [] {
        std::atexit(at_exit);
        part_at_forks();
    });
    const std::lock_guard lock(live().mutex);
    live().contexts.insert(this);
}

OpenCLContext::~OpenCLContext() {
    {
        // Also after at_exit(), which runs twice: static objects may hold contexts, and are
        // destroyed between the two.
        const std::lock_guard lock(live().mutex);
        live().contexts.erase(this);
    }
    if (!opencl_gone()) queue_->drain();
    destroy_pool();
    programs_.clear();
    queue_.reset();
    if (!opencl_gone()) clReleaseContext(context_);
}

std::unique_ptr<Buffer> OpenCLContext::make_buffer(std::uint64_t bytes) {
    cl_mem memory = nullptr;
    if (info_.kind == DeviceKind::cpu) memory = make_in_huge_pages(context_, bytes);
    const bool zeros = memory != nullptr;
    cl_int code = CL_SUCCESS;
    if (memory == nullptr)
        memory = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS) return nullptr;
    return std::make_unique<OpenCLBuffer>(bytes, memory, &reserved(), queue_->thread(), zeros);
}

bool OpenCLContext::held_elsewhere(const Buffer& memory) {
    if (opencl_gone()) return false;
    cl_uint references = 0;
    return clGetMemObjectInfo(static_cast<cl_mem>(memory.handle()), CL_MEM_REFERENCE_COUNT,
                              sizeof(references), &references, nullptr) == CL_SUCCESS &&
           references > 1;
}

std::shared_ptr<Buffer> OpenCLContext::wrap(void* handle, std::uint64_t bytes) {
    require(handle != nullptr, "the cl_mem to wrap must not be null");
    const cl_mem memory = static_cast<cl_mem>(handle);
    cl_context owner = nullptr;
    std::size_t size = 0;
    cl_check(clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof(cl_context), &owner, nullptr),
             "wrapping a cl_mem");
    cl_check(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(size), &size, nullptr),
             "wrapping a cl_mem");
    require(owner == context_,
            "the cl_mem to wrap belongs to another cl_context than the one given");
    require(bytes <= size, "the cl_mem to wrap holds ", size, " bytes, fewer than the ", bytes,
            " needed");
    cl_check(clRetainMemObject(memory), "wrapping a cl_mem");
    return {new OpenCLBuffer(size, memory, nullptr, queue_->thread()),
            [self = shared_from_this()](Buffer* freed) { delete freed; }};
}

std::shared_ptr<Program> OpenCLContext::build(const ProgramSource& source) {
    // The context keeps the program and lives longer.
    const auto make = [&] {
        ProgramSource text = source;
        const double limit = queue_->launch_limit();
        if (limit > 0) text.source = with_group_offsets(source.source);
        // Tries the functions that it calls, on this thread.
        if (!BuildsLater::wanted()) builds_->key_of(text);
        return std::make_shared<OpenCLProgram>(*builds_, text, queue_->thread(), limit);
    };
    const std::shared_ptr<OpenCLProgram> program = programs_.of(source, make);
    if (BuildsLater::wanted())
        NotedBuilds::note(program);
    else
        program->handle();
    return program;
}

}  // namespace

bool is_new_zeros(const Buffer& buffer) noexcept {
    const auto* const known = dynamic_cast<const OpenCLBuffer*>(&buffer);
    return known != nullptr && known->zeros();
}

bool opencl_gone() noexcept {
    return live().gone.load();
}

std::size_t write_programs_of(ContextImpl& context, const BinaryCache& to) {
    auto* const opened = dynamic_cast<OpenCLContext*>(&context);
    return opened == nullptr ? 0 : opened->write_programs(to);
}

std::shared_ptr<ContextImpl> make_opencl_context(const OpenCLDevice& device,
                                                 const OpenCLObjects& given) {
    const auto context = std::make_shared<OpenCLContext>(device, given);
    context->probe();
    return context;
}

}  // namespace dlprim
