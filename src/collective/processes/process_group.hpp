// SPDX-License-Identifier: MIT
// ProcessGroup: the processes of a run, one rank each, with the transport between them and the
// watch over them.
//
// Threads: calls that exchange data are made by one thread at a time, and by all processes in the
// same order.
#pragma once

#include "collective/hosts/shared_host.hpp"
#include "collective/processes/rank_place.hpp"
#include "collective/processes/transport.hpp"
#include "collective/processes/watch.hpp"

#include <dlprim/error.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class ProcessGroup {
  public:
    /// Connects the processes that the place speaks of. `deadline`: how long a call waits for
    /// others. Throws Error.
    ProcessGroup(const RankPlace& place, std::chrono::duration<double> deadline);
    ~ProcessGroup();
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    const RankPlace& place() const { return place_; }
    std::size_t rank() const { return static_cast<std::size_t>(place_.rank); }
    std::size_t size() const { return static_cast<std::size_t>(place_.size); }
    const std::string& name(std::size_t rank) const { return names_.at(rank); }
    const char* transport() const { return transport_->name(); }

    /// How long a call waits for others: up to the group's deadline, or as long as it takes, since
    /// what they do before may take an unknown time. The watch ends either.
    enum class Wait : std::uint8_t { deadline, unlimited };
    // Where another process has failed, all calls throw Failure::error(), which names it.

    /// As Transport's.
    void exchange(const std::vector<Pieces>& to, const std::vector<Pieces>& from,
                  const std::string& what, Wait wait = Wait::deadline);
    bool can_add() const { return transport_->can_add(); }
    void allreduce(float* values, std::uint64_t count, const std::string& what);
    /// Which processes share a host, and memory.
    SharedHost& host() { return *host_; }
    /// As SharedHost's.
    void meet_on_host(const std::string& what, std::uint64_t bytes, Wait wait = Wait::deadline);
    /// As Transport's.
    std::uint64_t sent() const { return transport_->sent(); }

    // What follows waits without a deadline.

    /// The first process's bytes to all.
    void broadcast(void* data, std::uint64_t bytes, const std::string& what);
    void allgather(const void* own, std::uint64_t bytes, void* all, const std::string& what);
    void barrier(const std::string& what);
    /// A text of each process, which all get. Texts may differ in length.
    std::vector<std::string> gather(const std::string& own, const std::string& what);
    /// Values of each process, whose numbers may differ: of all, in the order of ranks.
    template <typename T>
    std::vector<T> gather(const std::vector<T>& own, const std::string& what) {
        std::vector<T> all;
        for (const std::string& part : gather(text_of(own), what)) {
            const std::vector<T> values = values_of<T>(part);
            all.insert(all.end(), values.begin(), values.end());
        }
        return all;
    }
    /// The first process's values to all.
    template <typename T>
    std::vector<T> share(const std::vector<T>& own, const std::string& what) {
        return values_of<T>(share(text_of(own), what));
    }
    /// The first process's text to all.
    std::string share(std::string text, const std::string& what);
    /// Throws Error(invalid_argument), on all processes, where one differs from the first in a
    /// field: names it, both values and both processes.
    using Fields = std::vector<std::pair<std::string, std::string>>;
    void agree(const Fields& fields);

    /// Says which step the process is in.
    void set_step(std::uint64_t step) { watch_->set_step(step); }
    /// Tells the others of an error of this process, and returns what to say and to exit with.
    Failure failed(int code, const std::string& text);
    /// Called, by a thread of its own, if this process still runs some seconds after it has heard
    /// of a failure: its own thread waits for something else then.
    void on_lost(std::function<void(const Failure&)> call);
    /// Parts from the others, who all do so.
    void leave();

  private:
    /// What the object's threads share with one that may outlive it.
    struct Lost;
    template <typename T>
    static std::string text_of(const std::vector<T>& values) {
        return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
    }
    template <typename T>
    static std::vector<T> values_of(const std::string& text) {
        std::vector<T> values(text.size() / sizeof(T));
        std::memcpy(values.data(), text.data(), text.size());
        return values;
    }
    void call(const std::function<void()>& work);
    std::chrono::duration<double> limit(Wait wait) const;
    /// Connect by what the variables say, and by MPI itself.
    void meet_by_address(const dlprim_transport& plugin);
    void meet_by_mpi(const dlprim_transport& plugin);
    void* open(const dlprim_transport& plugin, const std::string& address) const;
    Watch::Options options(const std::string& token) const;

    const RankPlace place_;
    const std::chrono::duration<double> deadline_;
    std::vector<std::string> names_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Watch> watch_;              ///< goes first: its thread uses the transport
    std::shared_ptr<std::atomic<bool>> ended_;  ///< whether a process was lost
    std::unique_ptr<SharedHost> host_;
    std::shared_ptr<Lost> lost_;
    std::string common_error_;  ///< that all processes have found alike
};

}  // namespace dlprim
