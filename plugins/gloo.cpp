// SPDX-License-Identifier: MIT
// The transport by Gloo over TCP. Collectives are made of its unbound buffers, which are what its
// own collectives use, since waiting for these alone can be cancelled.
#include "collective/processes/transport_plugin.h"

#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <pthread.h>
#include <signal.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;

void say(dlprim_message message, const std::string& text) {
    if (message.room == 0) return;
    const std::size_t length = std::min(text.size(), message.room - 1);
    std::memcpy(message.text, text.data(), length);
    message.text[length] = 0;
}

/// Holds back SIGPIPE in this thread, and in those that it starts: Gloo writes to sockets whose
/// other end may be gone, which is an error of the call and must not end the process.
class WithoutSigpipe {
  public:
    WithoutSigpipe() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~WithoutSigpipe() {
        if (sigismember(&before_, SIGPIPE) == 0) {
            const timespec now{};
            while (sigtimedwait(&pipe_, nullptr, &now) > 0) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    WithoutSigpipe(const WithoutSigpipe&) = delete;
    WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

  private:
    sigset_t pipe_{}, before_{};
};

/// Shares addresses between the processes while they connect. A wait for a key ends when a process
/// is lost.
class SharedStore {
  public:
    explicit SharedStore(const dlprim_transport_start& start) : start_(start) {}
    void set(const std::string& key, const std::vector<char>& data) const {
        if (start_.set(start_.store, key.c_str(), data.data(), data.size()) != 0)
            throw std::runtime_error("the addresses cannot be shared");
    }
    std::vector<char> get(const std::string& key) const {
        std::vector<char> data(1 << 16);
        std::size_t bytes = 0;
        if (start_.get(start_.store, key.c_str(), data.data(), data.size(), &bytes) != 0)
            throw std::runtime_error("another process has not shared its address");
        data.resize(bytes);
        return data;
    }

  private:
    const dlprim_transport_start& start_;
};

/// Calls `give_up` when a process of the run is lost, until it is destroyed.
class Guard {
  public:
    Guard(const SharedStore& store, int rank, std::function<void()> give_up)
        : store_(store), key_("connected " + std::to_string(rank)) {
        thread_ = std::thread([this, give_up = std::move(give_up)] {
            try {
                store_.get(key_);
            } catch (const std::exception&) {
                try {
                    give_up();
                } catch (const std::exception&) {
                    // Waits end by Gloo's own deadline then.
                }
            }
        });
    }
    ~Guard() {
        try {
            store_.set(key_, {'1'});
        } catch (const std::exception&) {
            // The thread ends by itself when the time for a start is over.
        }
        thread_.join();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    const SharedStore& store_;
    const std::string key_;
    std::thread thread_;
};

/// Every process connected with every other. Gloo's own connectFullMesh() waits five times the
/// timeout for a process that is lost after it has shared its addresses.
class Mesh : public gloo::Context {
  public:
    Mesh(const dlprim_transport_start& start, std::shared_ptr<gloo::transport::Device> device)
        : gloo::Context(start.rank, start.size) {
        setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000 * start.seconds)));
        device_ = std::move(device);
        transportContext_ = device_->createContext(rank, size);
        transportContext_->setTimeout(getTimeout());
        const SharedStore store(start);
        std::vector<char> own;
        for (const int other : others()) {
            const auto address = transportContext_->createPair(other)->address().bytes();
            own.insert(own.end(), address.begin(), address.end());
        }
        std::atomic<bool> lost = false;
        const auto check = [&] {
            if (lost) throw std::runtime_error("another process was lost");
        };
        {
            const Guard guard(store, rank, [&] {
                lost = true;
                for (const int other : others()) getPair(other)->close();
            });
            store.set(std::to_string(rank), own);
            for (const int other : others()) {
                getPair(other)->connect(part_of(store.get(std::to_string(other)), other));
                check();
            }
        }
        check();
    }

  private:
    std::vector<int> others() const {
        std::vector<int> all;
        for (int other = 0; other < size; ++other)
            if (other != rank) all.push_back(other);
        return all;
    }
    /// Of the addresses of `other`, which has one for each process but itself, the one for this.
    std::vector<char> part_of(const std::vector<char>& all, int other) const {
        const std::size_t bytes = all.size() / static_cast<std::size_t>(size - 1);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(bytes) *
                                             static_cast<std::ptrdiff_t>(rank - (rank > other));
        return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
    }
};

class Transport {
  public:
    explicit Transport(std::shared_ptr<gloo::Context> context)
        : context_(std::move(context)), slot_(context_->nextSlot()) {}

    int size() const { return context_->size; }
    int rank() const { return context_->rank; }

    /// Processes take part in different numbers of these, so that they have one slot, in which Gloo
    /// keeps the order of what goes between two processes.
    int exchange(const dlprim_pieces* to, const dlprim_pieces* from, double seconds) {
        Buffers sends, receives;
        for (int step = 1; step < size(); ++step) {
            post((rank() + size() - step) % size(), from, false, receives);
            post((rank() + step) % size(), to, true, sends);
        }
        return wait(sends, receives, seconds);
    }

    /// Gloo's own, which cancel() does not end: only its deadline or a lost connection does.
    int allreduce(float* values, std::uint64_t count, double seconds) {
        gloo::AllreduceOptions how(context_);
        how.setOutput(values, static_cast<std::size_t>(count));
        how.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
        how.setTimeout(std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, 1e8)) + 1));
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (cancelled_) return DLPRIM_TRANSPORT_CANCELLED;
        }
        gloo::allreduce(how);
        return DLPRIM_TRANSPORT_DONE;
    }

    void cancel() {
        const std::lock_guard<std::mutex> lock(mutex_);
        cancelled_ = true;
        abort();
    }

  private:
    /// Begins to move the pieces to or from a process.
    void post(int other, const dlprim_pieces* lists, bool send, Buffers& buffers) {
        const dlprim_pieces& pieces = lists[other];
        for (std::size_t i = 0; i < pieces.count; ++i) {
            buffers.push_back(context_->createUnboundBuffer(
                pieces.pieces[i].data, static_cast<std::size_t>(pieces.pieces[i].bytes)));
            if (send)
                buffers.back()->send(other, slot_);
            else
                buffers.back()->recv(other, slot_);
        }
    }

    int wait(Buffers& sends, Buffers& receives, double seconds) {
        // A clock of nanoseconds does not reach further than centuries, and Gloo's adds to it.
        const auto deadline =
            Clock::now() +
            std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, 1e8)) + 1);
        const auto left = [&] {
            return std::max(
                std::chrono::milliseconds(1),
                std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
        };
        for (auto& buffer : receives)
            if (!wait_for(*buffer, [&] { return buffer->waitRecv(left()); }))
                return DLPRIM_TRANSPORT_CANCELLED;
        for (auto& buffer : sends)
            if (!wait_for(*buffer, [&] { return buffer->waitSend(left()); }))
                return DLPRIM_TRANSPORT_CANCELLED;
        return DLPRIM_TRANSPORT_DONE;
    }

    template <typename Wait>
    bool wait_for(gloo::transport::UnboundBuffer& buffer, const Wait& wait) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (cancelled_) return false;
            present_ = &buffer;
        }
        struct End {
            Transport& transport;
            ~End() {
                const std::lock_guard<std::mutex> lock(transport.mutex_);
                transport.present_ = nullptr;
            }
        } end{*this};
        return wait();
    }

    void abort() {
        if (present_ == nullptr) return;
        present_->abortWaitRecv();
        present_->abortWaitSend();
    }

    std::shared_ptr<gloo::Context> context_;
    const std::uint64_t slot_;  ///< of exchange()
    std::mutex mutex_;
    gloo::transport::UnboundBuffer* present_ = nullptr;
    bool cancelled_ = false;
};

Transport& transport_of(void* self) {
    return *static_cast<Transport*>(self);
}

/// Runs `work`, whose exceptions become results.
template <typename Work>
int guarded(dlprim_message message, double seconds, const Work& work) {
    const WithoutSigpipe quiet;
    const auto begin = Clock::now();
    try {
        return work();
    } catch (const std::exception& error) {
        say(message, error.what());
    }
    const std::chrono::duration<double> passed = Clock::now() - begin;
    return passed.count() >= seconds ? DLPRIM_TRANSPORT_LATE : DLPRIM_TRANSPORT_FAILED;
}

void* open(const dlprim_transport_start* start, dlprim_message message) {
    const WithoutSigpipe quiet;
    try {
        gloo::transport::tcp::attr how;
        // As PyTorch has it.
        if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME"))
            how.iface = interface;
        else if (start->address[0] != 0)
            how.hostname = start->address;
        return new Transport(
            std::make_shared<Mesh>(*start, gloo::transport::tcp::CreateDevice(how)));
    } catch (const std::exception& error) {
        say(message, error.what());
        return nullptr;
    }
}

int exchange(void* self, const dlprim_pieces* to, const dlprim_pieces* from, double seconds,
             dlprim_message message) {
    return guarded(message, seconds,
                   [&] { return transport_of(self).exchange(to, from, seconds); });
}

int allreduce(void* self, float* values, std::uint64_t count, double seconds,
              dlprim_message message) {
    return guarded(message, seconds,
                   [&] { return transport_of(self).allreduce(values, count, seconds); });
}

void cancel(void* self) {
    transport_of(self).cancel();
}

void close(void* self, int whole) {
    const WithoutSigpipe quiet;
    if (whole != 0) delete &transport_of(self);
}

constexpr dlprim_transport table{
    DLPRIM_TRANSPORT_ABI, "Gloo", open, exchange, cancel, close, allreduce};

}  // namespace

extern "C" __attribute__((visibility("default"))) const dlprim_transport*
dlprim_transport_plugin() {
    return &table;
}
