// SPDX-License-Identifier: MIT
// The in-order queue of an OpenCL context. A second queue with profiling is made on demand, because
// some drivers make all work on a profiling queue slower.
#include "runtime/opencl_queue.hpp"

#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/kernel_turns.hpp"
#include "runtime/opencl_program.hpp"
#include "runtime/split_launch.hpp"

#include <cstring>

namespace dlprim {
namespace {

cl_mem memory(const BufferRef& ref) {
    return static_cast<cl_mem>(ref.buffer->handle());
}

/// A copy by all of the host's threads.
void copy_bytes(const void* from, void* to, std::uint64_t bytes) {
    constexpr std::int64_t least = 1 << 20;  // for a thread
    shared_pool().parallel_for(static_cast<std::int64_t>(bytes), least,
                               [&](std::int64_t begin, std::int64_t end) {
                                   std::memcpy(static_cast<std::byte*>(to) + begin,
                                               static_cast<const std::byte*>(from) + begin,
                                               static_cast<std::size_t>(end - begin));
                               });
}

/// clFinish() of Mesa's rusticl 22.3 returns at once where nothing was enqueued since the last
/// clFlush(), while the work still runs. A marker is something to wait for.
cl_int finish_queue(cl_command_queue queue) {
    const cl_int code = clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr);
    return code != CL_SUCCESS ? code : clFinish(queue);
}

}  // namespace

OpenCLQueue::OpenCLQueue(cl_context context, cl_device_id device, Counters& counters,
                         cl_command_queue given)
    : context_(context), device_(device), counters_(counters), refusals_(context) {
    if (given != nullptr) cl_check(clRetainCommandQueue(given), "keeping a command queue");
    plain_ = given != nullptr ? given : make(0);
    current_ = plain_;
}

OpenCLQueue::~OpenCLQueue() {
    if (opencl_gone()) {
        static_cast<void>(thread_.release());  // a child of fork() has no such thread to wait for
        return;
    }
    drain();
    thread_.reset();
    delete put_off_.exchange(nullptr);
    for (const Pending& pending : pending_) pending.release();
    if (takes_turns_)
        for (const cl_command_queue queue : {plain_, profiled_})
            KernelTurns::of_process().leave(queue);
    clReleaseCommandQueue(plain_);
    if (profiled_ != nullptr) clReleaseCommandQueue(profiled_);
    if (transfers_ != nullptr) clReleaseCommandQueue(transfers_);
}

PutOffCalls* OpenCLQueue::put_off() {
    if (waits_ || thread_ || !recording_ || !crew_) return nullptr;
    std::call_once(asked_crew_, [this] {
        if (auto crew = crew_()) put_off_ = new PutOffCalls(std::move(*crew));
    });
    return put_off_;
}

PutOffCalls* put_off_calls(Queue& queue) {
    auto* const opencl = dynamic_cast<OpenCLQueue*>(&queue);
    return opencl == nullptr ? nullptr : opencl->put_off();
}

double launch_limit(Queue& queue) {
    const auto* const opencl = dynamic_cast<OpenCLQueue*>(&queue);
    return opencl == nullptr ? 0 : opencl->launch_limit();
}

void settle_calls(Queue& queue) noexcept {
    if (const auto* const opencl = dynamic_cast<OpenCLQueue*>(&queue)) opencl->settle();
}

void OpenCLQueue::take_turns() {
    takes_turns_ = true;
    KernelTurns::of_process().join(plain_);
}

cl_command_queue OpenCLQueue::make(cl_command_queue_properties properties) const {
    return cl_make_queue(context_, device_, properties);
}

void OpenCLQueue::launch(Kernel& kernel, const NDRange& range) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(range.dims); ++i)
        if (range.global[i] == 0) return;
    auto& its = static_cast<OpenCLKernel&>(kernel);
    if (its.parts() == 1) [[likely]]
        return launch_now(its, range);
    for (const PartRange& part : split_range(range, its.parts())) {
        launch_now(its, part);
        // A watchdog's time may be that of what is handed over together.
        if (LaunchThread* const thread = recorder())
            thread->flush();
        else
            cl_check(clFlush(current_), "flushing the queue");
    }
}

void OpenCLQueue::launch_now(OpenCLKernel& kernel, const PartRange& range) {
    count(counters_.launches);
    if (LaunchThread* const thread = recorder()) return thread->launch(kernel, range);
    settle();
    cl_event event = nullptr;
    const bool profiling = current_ == profiled_;
    kernel.launch(current_, range, profiling ? &event : nullptr);
    if (profiling) pending_.push_back({label_, event, nullptr});
    wait_for("running kernel '", kernel.name(), "'");
}

void OpenCLQueue::run(const std::function<void(HostPool&)>&) {
    fail(ErrorKind::unsupported, "host work cannot run on the queue of an OpenCL device");
}

void OpenCLQueue::enqueue_otherwise(const std::function<void(void*)>& work) {
    const cl_command_queue queue = handle();
    const bool profiling = current_ == profiled_;
    const auto mark = [&] {
        cl_event event = nullptr;
        if (profiling)
            cl_check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "profiling a launch");
        return event;
    };
    const cl_event before = mark();
    work(queue);
    count(counters_.launches);
    if (profiling) pending_.push_back({label_, mark(), before});
    wait_for("running what another library has enqueued");
}

template <typename Copy>
void OpenCLQueue::with_mapped(const BufferRef& at, std::uint64_t bytes, cl_map_flags flags,
                              const Copy& copy) {
    cl_int code = CL_SUCCESS;
    void* const mapped = clEnqueueMapBuffer(handle(), memory(at), CL_TRUE, flags,
                                            at.handle_offset(), bytes, 0, nullptr, nullptr, &code);
    cl_check(code, "mapping ", bytes, " bytes of the device");
    copy(static_cast<std::byte*>(mapped));
    cl_check(clEnqueueUnmapMemObject(current_, memory(at), mapped, 0, nullptr, nullptr),
             "unmapping ", bytes, " bytes of the device");
}

void OpenCLQueue::write(const BufferRef& to, const void* from, std::uint64_t bytes, bool blocking) {
    if (bytes == 0) return;
    if (blocking) count(counters_.waits);
    wait_for_calls();
    to.buffer->touch();
    if (blocking && bytes >= map_from_)
        return with_mapped(to, bytes, CL_MAP_WRITE_INVALIDATE_REGION,
                           [&](std::byte* mapped) { copy_bytes(from, mapped, bytes); });
    cl_check(clEnqueueWriteBuffer(handle(), memory(to), blocking ? CL_TRUE : CL_FALSE,
                                  to.handle_offset(), bytes, from, 0, nullptr, nullptr),
             "writing ", bytes, " bytes to the device");
    wait_for("writing ", bytes, " bytes to the device");
}

void OpenCLQueue::read(const BufferRef& from, void* to, std::uint64_t bytes, bool blocking) {
    if (bytes == 0) return;
    wait_for_calls();
    OpenCLRefusals::Look look;
    if (blocking) {
        count(counters_.waits);
        refusals_.enqueue(handle(), look);
    }
    try {
        if (blocking && bytes >= map_from_)
            with_mapped(from, bytes, CL_MAP_READ,
                        [&](const std::byte* mapped) { copy_bytes(mapped, to, bytes); });
        else
            cl_check(clEnqueueReadBuffer(handle(), memory(from), blocking ? CL_TRUE : CL_FALSE,
                                         from.handle_offset(), bytes, to, 0, nullptr, nullptr),
                     "reading ", bytes, " bytes from the device");
    } catch (const Error&) {
        if (look.pending()) clFinish(current_);  // the look is about to go
        throw;
    }
    if (blocking) rethrow();
    refusals_.check(current_, look);
}

void OpenCLQueue::copy(const BufferRef& from, const BufferRef& to, std::uint64_t bytes) {
    if (bytes == 0) return;
    wait_for_calls();
    to.buffer->touch();
    if (LaunchThread* const thread = recorder())
        return thread->copy(memory(from), from.handle_offset(), memory(to), to.handle_offset(),
                            bytes);
    cl_check(clEnqueueCopyBuffer(handle(), memory(from), memory(to), from.handle_offset(),
                                 to.handle_offset(), bytes, 0, nullptr, nullptr),
             "copying ", bytes, " bytes on the device");
    wait_for("copying ", bytes, " bytes on the device");
}

void OpenCLQueue::fill(const BufferRef& to, std::uint64_t bytes, const void* pattern,
                       std::size_t pattern_bytes) {
    if (bytes == 0) return;
    wait_for_calls();
    to.buffer->touch();
    if (LaunchThread* const thread = recorder())
        return thread->fill(memory(to), to.handle_offset(), bytes, pattern, pattern_bytes);
    cl_check(clEnqueueFillBuffer(handle(), memory(to), pattern, pattern_bytes, to.handle_offset(),
                                 bytes, 0, nullptr, nullptr),
             "filling ", bytes, " bytes on the device");
    wait_for("filling ", bytes, " bytes on the device");
}

void OpenCLQueue::flush() {
    count(counters_.flushes);
    if (const PutOffCalls* const calls = put_off_; calls && calls->any() && !calls->is_own_thread())
        return;  // each call that is put off ends with a flush
    if (LaunchThread* const thread = recorder()) return thread->flush();
    settle();
    ++handed_over_;
    cl_check(clFlush(current_), "flushing the queue");
}

void OpenCLQueue::finish() {
    count(counters_.waits);
    wait_for_calls();
    OpenCLRefusals::Look look;
    refusals_.enqueue(handle(), look);
    ++handed_over_;
    cl_check(finish_queue(current_), "waiting for the device");
    rethrow();
    refusals_.check(current_, look);
}

void OpenCLQueue::throw_later(const std::exception_ptr& error) {
    const std::lock_guard lock(later_mutex_);
    if (!later_) later_ = error;
    has_later_ = true;
}

void OpenCLQueue::rethrow() {
    if (thread_) thread_->rethrow();
    if (PutOffCalls* const calls = put_off_; calls && !calls->is_own_thread()) calls->rethrow();
    if (!has_later_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(later_mutex_);
    has_later_ = false;
    if (std::exception_ptr error = std::exchange(later_, nullptr)) std::rethrow_exception(error);
}

void OpenCLQueue::stop_recording() noexcept {
    shared_ = true;
    recording_ = false;
    settle();
}

void OpenCLQueue::drain() noexcept {
    finish_queue(handle());
    if (transfers_ != nullptr) finish_queue(transfers_);
}

cl_command_queue OpenCLQueue::transfers() {
    if (transfers_ == nullptr) transfers_ = make(0);
    return transfers_;
}

void OpenCLQueue::set_profiling(bool on) {
    if (on == (profiled_ != nullptr && current_ == profiled_)) return;
    recording_ = !on && !shared_;
    finish();  // work of the two queues must not overlap
    collect();
    if (on && profiled_ == nullptr) profiled_ = make(CL_QUEUE_PROFILING_ENABLE);
    current_ = on ? profiled_ : plain_;
}

std::vector<ProfileRecord> OpenCLQueue::take_profile() {
    finish();
    collect();
    return std::exchange(records_, {});
}

void OpenCLQueue::collect() {
    for (const Pending& pending : pending_) {
        const auto time_of = [](cl_event event, cl_profiling_info what, std::uint64_t& time) {
            cl_ulong found = 0;
            const bool known =
                clGetEventProfilingInfo(event, what, sizeof(found), &found, nullptr) == CL_SUCCESS;
            time = found;
            return known;
        };
        ProfileRecord record;
        record.label = pending.label;
        const bool started =
            pending.before == nullptr
                ? time_of(pending.event, CL_PROFILING_COMMAND_START, record.start_ns)
                : time_of(pending.before, CL_PROFILING_COMMAND_END, record.start_ns);
        if (started && time_of(pending.event, CL_PROFILING_COMMAND_END, record.end_ns))
            records_.push_back(record);
        pending.release();
    }
    pending_.clear();
}

}  // namespace dlprim
