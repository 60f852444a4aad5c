// SPDX-License-Identifier: MIT
// Watch: by which the processes of a run know of each other's end. Every process holds a TCP
// connection to the first one, which hears as soon as another dies, since the system closes its
// connections, and tells all. Who is alive says so every second. So the end of a process is known
// whatever the others wait for, and the first that failed is named, not who failed for want of it.
//
// The first process also keeps a store of small values for all, where transports put addresses.
//
// Threads: all functions may be called from any thread; a thread of the object's own does the work.
#pragma once

#include <dlprim/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

/// The exit code where another start may go better (dlprim::restart_code).
constexpr int lost_code = 75;

/// What ended a run.
struct Failure {
    int rank = 0;            ///< of the process that failed first
    std::uint64_t step = 0;  ///< that it was in
    int code = 0;            ///< the exit code that suits all processes
    std::string text;        ///< "rank 1 (process 12 on 'host') failed in step 5: ..."
    /// As an error, whose kind gives this process the exit code of that one.
    Error error() const {
        return {code == 1 ? ErrorKind::invalid_argument : ErrorKind::device, text};
    }
};

class Watch {
  public:
    struct Options {
        int rank = 0, size = 1;
        std::string name;   ///< "process 12 on 'host'"
        std::string token;  ///< known to the processes of the run alone
        /// How long the connections may take, and how long a process may be silent.
        std::chrono::duration<double> start{120}, silence{40};
    };
    /// Of the first process: listens on the port, or on any if it is 0; `local`: for this host
    /// alone. Throws Error(io).
    static std::unique_ptr<Watch> listen(const Options& options, int port, bool local);
    /// Of the others: connects to the first of these addresses that answers. Throws Error(io).
    static std::unique_ptr<Watch> connect(const Options& options,
                                          const std::vector<std::string>& addresses, int port);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    int port() const;
    /// Waits until all processes are connected, and returns the names of all. Throws Error(io),
    /// which names who is missing.
    std::vector<std::string> wait_for_all();

    /// The store. get() waits, and throws Error(io) when the start takes too long.
    void set(const std::string& key, const std::string& value);
    std::string get(const std::string& key);

    /// Which step this process is in, for messages.
    void set_step(std::uint64_t step);

    /// Tells all that this process has failed. `first_hand`: the cause is here; otherwise it may be
    /// another's failure, and that one is given two seconds to become known.
    void report(int code, const std::string& text, bool first_hand);
    /// The failure that all know of, if there is one.
    std::optional<Failure> failure() const;
    /// The same, for which it waits. The handler of on_failure(), if there is one, has returned
    /// before this function returns the failure, unless that takes longer than `most`. The handler
    /// itself must not call this function.
    std::optional<Failure> wait_for_failure(std::chrono::duration<double> most) const;
    /// Sets the handler, which the object's thread calls once, when there is a failure; at once
    /// where there is one already.
    void on_failure(std::function<void(const Failure&)> call);
    /// Ends the watch: that this process goes is no failure any more.
    void leave();

  private:
    class Impl;
    explicit Watch(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace dlprim
