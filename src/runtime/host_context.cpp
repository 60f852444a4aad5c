// SPDX-License-Identifier: MIT
// The host as a device: aligned memory, and work that runs immediately. It has no programs.
//
// A described device (runtime/device_file.hpp) has such memory, too. Its programs are recorded in
// place of being compiled, and nothing runs.
#include "base/text.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/event_impl.hpp"
#include "runtime/memory.hpp"
#include "runtime/recorded_program.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dlprim {
namespace {

constexpr std::size_t alignment = 64;

class HostBuffer : public Buffer {
  public:
    HostBuffer(std::uint64_t bytes, std::byte* memory, Gauge* account)
        : Buffer(bytes, memory, nullptr), account_(account) {
        if (account_ != nullptr)
            account_->add(bytes);
        else
            set_foreign();
    }
    ~HostBuffer() override {
        if (account_ == nullptr) return;
        account_->remove(bytes());
        std::free(host());
    }

  private:
    Gauge* account_;  ///< nullptr for memory that is not owned
};

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

class HostQueue : public Queue {
  public:
    HostQueue(Counters& counters, HostPool& pool) : counters_(counters), pool_(pool) {}

    void launch(Kernel& kernel, const NDRange&) override {
        fail(ErrorKind::unsupported, "OpenCL kernel '", kernel.name(), "' cannot run on the host");
    }

    void run(const std::function<void(HostPool&)>& work) override {
        count(counters_.launches);
        if (!profiling_) return work(pool_);
        ProfileRecord record{label_, now_ns(), 0};
        work(pool_);
        record.end_ns = now_ns();
        records_.push_back(record);
    }

    void enqueue_otherwise(const std::function<void(void*)>&) override {
        fail(ErrorKind::unsupported, "the host has no queue of OpenCL");
    }

    // The caller's memory may belong to a tensor that shares this buffer, so the two may overlap.
    void write(const BufferRef& to, const void* from, std::uint64_t bytes, bool blocking) override {
        if (blocking) count(counters_.waits);
        to.buffer->touch();
        if (bytes > 0) std::memmove(to.host(), from, bytes);
    }
    void read(const BufferRef& from, void* to, std::uint64_t bytes, bool blocking) override {
        if (blocking) count(counters_.waits);
        if (bytes > 0) std::memmove(to, from.host(), bytes);
    }
    void copy(const BufferRef& from, const BufferRef& to, std::uint64_t bytes) override {
        to.buffer->touch();
        if (bytes > 0) std::memmove(to.host(), from.host(), bytes);
    }
    void fill(const BufferRef& to, std::uint64_t bytes, const void* pattern,
              std::size_t pattern_bytes) override {
        if (bytes == 0) return;
        to.buffer->touch();
        std::byte* out = to.host();
        if (pattern_bytes == 1) {
            std::memset(out, *static_cast<const unsigned char*>(pattern), bytes);
            return;
        }
        // Each copy doubles the part that is written, which is the source of the next copy.
        std::uint64_t done = std::min<std::uint64_t>(pattern_bytes, bytes);
        std::memcpy(out, pattern, done);
        while (done < bytes) {
            const std::uint64_t more = std::min(done, bytes - done);
            std::memcpy(out + done, out, more);
            done += more;
        }
    }

    void flush() override { count(counters_.flushes); }
    void finish() override { count(counters_.waits); }

    void set_profiling(bool on) override { profiling_ = on; }
    std::vector<ProfileRecord> take_profile() override { return std::exchange(records_, {}); }

  private:
    Counters& counters_;
    HostPool& pool_;
    bool profiling_ = false;
    std::vector<ProfileRecord> records_;
};

// Work on the host is finished when a call returns, and so are copies.
class HostFeed : public InputFeed {
  public:
    HostFeed(std::shared_ptr<Buffer> to, std::uint64_t byte_offset, std::uint64_t bytes)
        : to_(std::move(to)), byte_offset_(byte_offset), bytes_(bytes) {}
    void write(const void* data) override {
        to_->touch();
        if (bytes_ > 0) std::memmove(to_->host() + byte_offset_, data, bytes_);
    }
    std::uint64_t device_bytes() const noexcept override { return 0; }

  private:
    std::shared_ptr<Buffer> to_;
    std::uint64_t byte_offset_, bytes_;
};

class HostReadback : public Readback {
  public:
    explicit HostReadback(std::uint64_t bytes) {
        for (auto& kept : kept_) kept.resize(bytes);
    }
    void read(const BufferRef& from) override {
        std::vector<std::byte>& kept = kept_[reads_++ % slots];
        std::copy_n(from.host(), kept.size(), kept.begin());
    }
    const std::byte* take() override { return kept_[taken_++ % slots].data(); }

  private:
    std::vector<std::byte> kept_[slots];
    std::size_t reads_ = 0, taken_ = 0;
};

class HostEvent : public EventImpl {
  public:
    explicit HostEvent(std::uint64_t recorded_ns) : recorded_ns_(recorded_ns) {}
    bool done() override { return true; }
    void wait() override {}
    void order(ContextImpl&) override {}
    std::uint64_t time_ns() override { return recorded_ns_; }

  private:
    std::uint64_t recorded_ns_;
};

class HostContext : public PooledContext {
  public:
    HostContext() : HostContext(host_info(), host_traits()) {}
    HostContext(const DeviceInfo& info, const Traits& traits) : queue_(counters_, shared_pool()) {
        info_ = info;
        traits_ = traits;
        lower_traits(traits_);
    }
    ~HostContext() override { destroy_pool(); }

    std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) override {
        require(handle != nullptr || bytes == 0, "host memory to wrap must not be null");
        return std::make_shared<HostBuffer>(bytes, static_cast<std::byte*>(handle), nullptr);
    }
    Queue& queue() override { return queue_; }
    std::shared_ptr<EventImpl> record(EventOptions options) override {
        return std::make_shared<HostEvent>(options.timed ? now_ns() : 0);
    }
    std::shared_ptr<std::byte> make_pinned(std::uint64_t bytes) override {
        std::unique_ptr<Buffer> memory = make_buffer(bytes);
        if (!memory) fail(ErrorKind::out_of_memory, "the host cannot allocate ", bytes, " bytes");
        std::byte* const data = memory->host();
        // The memory counts as the context's, which it therefore keeps.
        return {data, [self = shared_from_this(),
                       kept = std::shared_ptr<Buffer>(std::move(memory))](std::byte*) {}};
    }
    std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to, std::uint64_t byte_offset,
                                         std::uint64_t bytes) override {
        return std::make_unique<HostFeed>(std::move(to), byte_offset, bytes);
    }
    std::unique_ptr<Readback> make_readback(std::uint64_t bytes) override {
        return std::make_unique<HostReadback>(bytes);
    }
    std::shared_ptr<Program> build(const ProgramSource& source) override {
        fail(ErrorKind::unsupported, "OpenCL source '", source.name,
             "' cannot be built for the host");
    }

  protected:
    std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) override {
        const std::uint64_t padded = (bytes + alignment - 1) / alignment * alignment;
        void* memory = std::aligned_alloc(alignment, padded);
        if (memory == nullptr) return nullptr;
        return std::make_unique<HostBuffer>(bytes, static_cast<std::byte*>(memory), &reserved());
    }
    bool held_elsewhere(const Buffer&) override { return false; }
    void drain() noexcept override {}

  private:
    HostQueue queue_;
};

/// Where kernels would note what they refuse. None runs.
class NoRefusals : public Refusals {
  public:
    const Buffer& memory() override { return memory_; }
    int number_of(const std::string&) override { return 1; }
    void expect() noexcept override {}

  private:
    HostBuffer memory_{0, nullptr, nullptr};
};

class DescribedQueue : public HostQueue {
  public:
    DescribedQueue(ContextImpl& context, HostPool& pool)
        : HostQueue(context.counters(), pool), context_(context) {}
    void launch(Kernel&, const NDRange&) override { context_.require_runs(); }
    Refusals* refusals() noexcept override { return &refusals_; }

  private:
    ContextImpl& context_;
    NoRefusals refusals_;
};

class DescribedContext : public HostContext {
  public:
    explicit DescribedContext(const DescribedDevice& device)
        : HostContext(device.info, device.traits),
          options_(device.options),
          queue_(*this, shared_pool()) {}
    bool is_described() const noexcept override { return true; }
    Queue& queue() override { return queue_; }
    std::shared_ptr<Program> build(const ProgramSource& source) override {
        return std::make_shared<RecordedProgram>(
            ProgramSource{source.name, source.source, cat(source.options, options_)});
    }

  private:
    std::string options_;
    DescribedQueue queue_;
};

}  // namespace

std::shared_ptr<ContextImpl> make_host_context() {
    return std::make_shared<HostContext>();
}

std::shared_ptr<ContextImpl> make_described_context(const DescribedDevice& device) {
    return std::make_shared<DescribedContext>(device);
}

}  // namespace dlprim
