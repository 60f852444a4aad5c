// SPDX-License-Identifier: MIT
// Inputs are copied in three steps:
//   the user's memory -> a pinned slot
//   the slot -> device memory of the feed (second queue)
//   the feed's memory -> the place on the device (first queue)
// Events order the queues: the second waits for the first queue's last copy out of the feed's
// memory, and the first waits for the second queue's copy into it. So a copy to the device runs in
// parallel with the previous step, overwrites nothing that is still read, and delays no other work.
#include "runtime/opencl_transfer.hpp"

#include "runtime/counting.hpp"
#include "runtime/opencl_program.hpp"

#include <cstring>
#include <utility>

namespace dlprim {
namespace {

/// From this size on, a single thread copies slower than the bus.
constexpr std::uint64_t many_bytes = 4 << 20;

class OpenCLFeed : public InputFeed {
  public:
    OpenCLFeed(TransferHome home, std::shared_ptr<Buffer> to, std::uint64_t byte_offset,
               std::uint64_t bytes)
        : home_(std::move(home)), to_(std::move(to)), byte_offset_(byte_offset), bytes_(bytes) {}

    ~OpenCLFeed() override {
        if (opencl_gone()) return;
        if (staging_) home_.queue.drain();
        if (copied_ != nullptr) clReleaseEvent(copied_);
    }

    void write(const void* data) override {
        if (bytes_ == 0) return;
        if (!can_stage()) {
            home_.queue.write({to_.get(), byte_offset_}, data, bytes_, true);
            return;
        }
        Counters& counters = home_.context->counters();
        PinnedSlot& slot = *slots_[next_];
        next_ = (next_ + 1) % slots_.size();
        slot.wait(counters);
        copy_in(slot.data(), data);

        // Another queue may wait for an event of this queue only after the event's command was
        // flushed.
        if (copied_ != nullptr && copied_at_ == home_.queue.handed_over()) home_.queue.flush();
        const cl_command_queue second = home_.queue.transfers();
        const auto memory = static_cast<cl_mem>(staging_->handle());
        cl_event written = nullptr;
        cl_check(clEnqueueWriteBuffer(second, memory, CL_FALSE, staging_->offset(), bytes_,
                                      slot.data(), copied_ != nullptr ? 1 : 0,
                                      copied_ != nullptr ? &copied_ : nullptr, &written),
                 "writing ", bytes_, " bytes of an input to the device");
        slot.set_event(written);
        count(counters.flushes);
        cl_check(clFlush(second), "flushing the queue of inputs");

        to_->touch();
        cl_event copied = nullptr;
        cl_check(clEnqueueCopyBuffer(home_.queue.handle(), memory,
                                     static_cast<cl_mem>(to_->handle()), staging_->offset(),
                                     to_->offset() + byte_offset_, bytes_, 1, &written, &copied),
                 "copying ", bytes_, " bytes of an input on the device");
        if (copied_ != nullptr) clReleaseEvent(copied_);
        copied_ = copied;
        copied_at_ = home_.queue.handed_over();
    }

    std::uint64_t device_bytes() const noexcept override {
        return staging_ ? staging_->bytes() : 0;
    }

  private:
    /// Whether there is device memory for staging, which is allocated on the second write.
    bool can_stage() {
        if (state_ == State::ready) return true;
        if (state_ == State::refused) return false;
        if (state_ == State::new_) {
            state_ = State::written;
            return false;
        }
        try {
            std::shared_ptr<Buffer> staging = home_.context->allocate(bytes_);
            for (auto& slot : slots_) slot = std::make_unique<PinnedSlot>(home_, bytes_);
            staging_ = std::move(staging);
            state_ = State::ready;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::out_of_memory) throw;
            for (auto& slot : slots_) slot.reset();
            state_ = State::refused;  // a blocking write needs no memory
        }
        return staging_ != nullptr;
    }

    void copy_in(std::byte* to, const void* from) {
        if (bytes_ < many_bytes || home_.context->traits().wide_vectors) {
            std::memcpy(to, from, bytes_);
            return;
        }
        const auto* source = static_cast<const std::byte*>(from);
        home_.context->pool().parallel_for(static_cast<std::int64_t>(bytes_), many_bytes / 4,
                                           [&](std::int64_t begin, std::int64_t end) {
                                               std::memcpy(to + begin, source + begin,
                                                           static_cast<std::size_t>(end - begin));
                                           });
    }

    enum class State : std::uint8_t { new_, written, ready, refused };

    TransferHome home_;
    std::shared_ptr<Buffer> to_;
    std::uint64_t byte_offset_, bytes_;
    State state_ = State::new_;
    std::shared_ptr<Buffer> staging_;
    std::array<std::unique_ptr<PinnedSlot>, 2> slots_;
    std::size_t next_ = 0;
    cl_event copied_ = nullptr;  ///< of the last copy out of staging_
    std::uint64_t copied_at_ = 0;
};

class OpenCLReadback : public Readback {
  public:
    OpenCLReadback(TransferHome home, std::uint64_t bytes) : home_(std::move(home)), bytes_(bytes) {
        for (auto& slot : slots_) slot = std::make_unique<PinnedSlot>(home_, bytes);
    }
    ~OpenCLReadback() override {
        if (!opencl_gone()) home_.queue.drain();
    }

    void read(const BufferRef& from) override {
        PinnedSlot& slot = *slots_[reads_++ % slots];
        slot.wait(home_.context->counters());
        home_.queue.refusals()->enqueue(home_.queue.handle(), looks_[(reads_ - 1) % slots]);
        cl_event event = nullptr;
        cl_check(clEnqueueReadBuffer(home_.queue.handle(),
                                     static_cast<cl_mem>(from.buffer->handle()), CL_FALSE,
                                     from.handle_offset(), bytes_, slot.data(), 0, nullptr, &event),
                 "reading ", bytes_, " bytes from the device");
        slot.set_event(event);
    }

    const std::byte* take() override {
        OpenCLRefusals::Look& look = looks_[taken_ % slots];
        PinnedSlot& slot = *slots_[taken_++ % slots];
        slot.wait(home_.context->counters());
        home_.queue.rethrow();
        home_.queue.refusals()->check(home_.queue.handle(), look);
        return slot.data();
    }

  private:
    TransferHome home_;
    std::uint64_t bytes_;
    std::array<std::unique_ptr<PinnedSlot>, slots> slots_;
    std::array<OpenCLRefusals::Look, slots> looks_;  ///< at what was refused before each read
    std::size_t reads_ = 0, taken_ = 0;
};

}  // namespace

PinnedSlot::PinnedSlot(const TransferHome& home, std::uint64_t bytes) : queue_(home.queue) {
    cl_int code = CL_SUCCESS;
    memory_ = clCreateBuffer(home.handle, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr,
                             &code);
    cl_check(code, "making ", bytes, " bytes of host memory for transfers");
    count(home.context->counters().allocations);
    void* mapped =
        clEnqueueMapBuffer(queue_.transfers(), memory_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                           bytes, 0, nullptr, nullptr, &code);
    if (code != CL_SUCCESS) clReleaseMemObject(memory_);
    cl_check(code, "mapping ", bytes, " bytes of host memory for transfers");
    data_ = static_cast<std::byte*>(mapped);
}

PinnedSlot::~PinnedSlot() {
    if (opencl_gone()) return;
    if (event_ != nullptr) clReleaseEvent(event_);
    clEnqueueUnmapMemObject(queue_.transfers(), memory_, data_, 0, nullptr, nullptr);
    clReleaseMemObject(memory_);
}

void PinnedSlot::set_event(cl_event event) {
    if (event_ != nullptr) clReleaseEvent(event_);
    event_ = event;
}

void PinnedSlot::wait(Counters& counters) {
    if (event_ == nullptr) return;
    cl_int status = CL_QUEUED;
    cl_check(
        clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
        "asking for a copy's status");
    if (status != CL_COMPLETE) {
        count(counters.waits);
        cl_check(clWaitForEvents(1, &event_), "waiting for a copy");
    }
    set_event(nullptr);
}

std::unique_ptr<InputFeed> make_opencl_feed(TransferHome home, std::shared_ptr<Buffer> to,
                                            std::uint64_t byte_offset, std::uint64_t bytes) {
    return std::make_unique<OpenCLFeed>(std::move(home), std::move(to), byte_offset, bytes);
}

std::shared_ptr<std::byte> make_opencl_pinned(const TransferHome& home, std::uint64_t bytes) {
    struct Kept {
        TransferHome home;
        PinnedSlot slot;
        Kept(const TransferHome& made_on, std::uint64_t size)
            : home(made_on), slot(made_on, size) {}
    };
    const auto kept = std::make_shared<Kept>(home, bytes);
    return {kept, kept->slot.data()};
}

std::unique_ptr<Readback> make_opencl_readback(TransferHome home, std::uint64_t bytes) {
    return std::make_unique<OpenCLReadback>(std::move(home), bytes);
}

}  // namespace dlprim
