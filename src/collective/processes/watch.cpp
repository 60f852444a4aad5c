// SPDX-License-Identifier: MIT
// Watch. Messages: to the first process hello, pulse, set, get, failed, bye; from it start, pulse,
// value, failure, bye.
#include "collective/processes/watch.hpp"

#include "base/text.hpp"
#include "collective/processes/socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds pulse{1};          ///< between two signs of life
constexpr Seconds second_hand{2};    ///< how long a failure waits for its cause to become known
constexpr Seconds introduction{10};  ///< how long a stranger may stay silent

enum Kind : std::uint8_t {
    hello,
    pulse_of,
    set_value,
    get_value,
    value_of,
    start,
    failed,
    failure_of,
    bye
};

/// Texts as one: each as its length, a blank, and its bytes.
std::string pack_texts(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += cat(part.size(), " ", part);
    return all;
}

/// Nothing where the text is not what pack_texts() made of so many.
std::vector<std::string> unpack_texts(const std::string& text, std::size_t parts) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t blank = text.find(' ', at);
        if (blank == std::string::npos) return {};
        const auto length = leading_number<std::size_t>(
            std::string_view(text).substr(at, blank - at), text.size() + 1);
        if (length > text.size() - blank - 1) return {};
        all.push_back(text.substr(blank + 1, length));
        at = blank + 1 + length;
    }
    return all.size() == parts ? all : std::vector<std::string>();
}

template <typename T>
T number(const std::string& text) {
    return leading_number<T>(text, 0);
}

}  // namespace

class Watch::Impl {
  public:
    Impl(const Options& options, Socket socket) : options_(options) {
        if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0)
            fail(ErrorKind::io, "no pipe can be made: ", std::strerror(errno));
        names_.resize(static_cast<std::size_t>(options_.size));
        steps_.resize(names_.size());
        if (is_first()) {
            port_ = port_of(socket);
            listener_ = std::move(socket);
            names_[0] = options_.name;
        } else {
            peers_.push_back({Connection(std::move(socket)), 0});
            peers_[0].link.send({hello, pack_texts({options_.token, cat(options_.rank),
                                                    options_.name, cat(options_.size)})});
        }
        exhausted_ = {options_.rank, 0, lost_code,
                      cat("rank ", options_.rank, " (", options_.name,
                          ") ran out of host memory as it watched the others")};
        thread_ = std::thread([this] { run(); });
    }
    ~Impl() {
        if (thread_.joinable()) {
            {
                const std::lock_guard lock(mutex_);
                ends_ = true;
                end_by_ = Clock::now() + std::chrono::seconds(1);
            }
            wake();
            thread_.join();
        }
        for (const int end : wake_) ::close(end);
    }

    const Options options_;
    int port_ = 0;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool started_ = false, left_ = false, ends_ = false;
    std::vector<std::string> names_;  ///< by rank; empty: not connected yet
    std::vector<std::uint64_t> steps_;
    std::map<std::string, std::string> store_;
    std::optional<Failure> failure_;
    std::function<void(const Failure&)> call_;

    bool is_first() const { return options_.rank == 0; }
    /// Whether there is a failure, of which the handler, if there is one, has been told.
    bool failure_is_told() const { return failure_ && !telling_ && !(fresh_ && call_); }

    void wake() {
        const char byte = 0;
        if (::write(wake_[1], &byte, 1) < 0) return;  // it is full, and the thread awake
    }
    /// To the first process.
    void send(const Frame& frame) {
        if (!peers_.empty()) peers_[0].link.send(frame);
        wake();
    }
    std::string name(int rank) const {
        const std::string& own = names_.at(static_cast<std::size_t>(rank));
        return own.empty() ? cat("rank ", rank) : cat("rank ", rank, " (", own, ")");
    }
    void put(const std::string& key, const std::string& value) {
        store_[key] = value;
        for (Peer& peer : peers_) answer(peer);
        changed_.notify_all();
        wake();
    }
    void leave() {
        left_ = true;
        for (Peer& peer : peers_) peer.link.send({bye, {}});
        wake();
    }
    void take_report(int rank, std::uint64_t step, int code, const std::string& text,
                     bool first_hand) {
        if (failure_) return;
        const Failure found{rank, step, code,
                            cat(name(rank), " failed in step ", step, ": ", text)};
        if (first_hand) return decide(found);
        if (!rumour_) rumour_.emplace(found, Clock::now());
    }
    void decide(const Failure& found) {
        if (failure_) return;
        failure_ = found;
        fresh_ = true;
        changed_.notify_all();
        if (!is_first()) return;
        for (Peer& peer : peers_)
            peer.link.send({failure_of, pack_texts({cat(found.rank), cat(found.step),
                                                    cat(found.code), found.text})});
    }

  private:
    struct Peer {
        Connection link;
        int rank = -1;  ///< of the other side; -1: it has not said so yet
        Clock::time_point heard = Clock::now();
        bool gone = false, left = false;
        std::vector<std::string> asked;  ///< keys whose values it waits for
    };
    Socket listener_;
    std::vector<Peer> peers_;
    int wake_[2] = {-1, -1};
    std::optional<std::pair<Failure, Clock::time_point>> rumour_;
    Clock::time_point end_by_{};
    bool fresh_ = false;    ///< whether there is a failure that call_ has not been told of
    bool telling_ = false;  ///< whether call_ is being told
    Clock::time_point pulsed_ = Clock::now();
    /// Made while there is memory, for the case that there is none.
    Failure exhausted_;
    std::thread thread_;

    void run();
    void run_out() noexcept;
    void told() noexcept;
    void serve();
    void accept_all();
    void take(Peer& peer, const Frame& frame);
    void take_first(Peer& peer, const Frame& frame);
    void take_other(const Frame& frame);
    void lost(Peer& peer, const std::string& how);
    void look_after();
    void answer(Peer& peer);
};

void Watch::Impl::accept_all() {
    for (;;) {
        Socket socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) return;
        // Strangers must not take what the run needs.
        if (peers_.size() < 2 * names_.size() + 16)
            peers_.push_back({Connection(std::move(socket))});
    }
}

void Watch::Impl::answer(Peer& peer) {
    std::vector<std::string> open;
    for (const std::string& key : peer.asked) {
        const auto found = store_.find(key);
        if (found == store_.end())
            open.push_back(key);
        else
            peer.link.send({value_of, pack_texts({key, found->second})});
    }
    peer.asked = std::move(open);
}

void Watch::Impl::take_first(Peer& peer, const Frame& frame) {
    if (peer.rank < 0) {
        const std::vector<std::string> parts = unpack_texts(frame.data, 4);
        const int rank = parts.empty() ? -1 : leading_number(parts[1], -1);
        peer.gone = frame.kind != hello || rank < 1 || parts[0] != options_.token || started_;
        if (peer.gone) return;
        const std::string who = cat("rank ", rank, " (", parts[2], ")");
        if (parts[3] != cat(options_.size))
            return decide(
                {rank, 0, 1,
                 cat(who, " is one of ", parts[3], " processes, and ", name(0), " one of ",
                     options_.size, ": all need the same number of processes")});
        if (rank >= options_.size || !names_[static_cast<std::size_t>(rank)].empty())
            return decide({rank, 0, 1,
                           cat(who, " has come, and so has ", name(rank),
                               ": each process needs a rank of its own")});
        peer.rank = rank;
        names_[static_cast<std::size_t>(rank)] = parts[2];
        started_ = std::none_of(names_.begin(), names_.end(),
                                [](const std::string& name) { return name.empty(); });
        if (!started_) return;
        for (Peer& other : peers_)
            if (other.rank > 0) other.link.send({start, pack_texts(names_)});
        changed_.notify_all();
        return;
    }
    const auto rank = static_cast<std::size_t>(peer.rank);
    if (frame.kind == pulse_of) {
        steps_[rank] = number<std::uint64_t>(frame.data);
    } else if (frame.kind == set_value) {
        const std::vector<std::string> parts = unpack_texts(frame.data, 2);
        if (parts.empty() || store_.size() > 100 * names_.size() + 1000) return;
        put(parts[0], parts[1]);
    } else if (frame.kind == get_value) {
        peer.asked.push_back(frame.data);
        answer(peer);
    } else if (frame.kind == failed) {
        const std::vector<std::string> parts = unpack_texts(frame.data, 4);
        if (parts.empty()) return;
        take_report(peer.rank, number<std::uint64_t>(parts[0]), number<int>(parts[1]), parts[3],
                    parts[2] == "1");
    } else if (frame.kind == bye) {
        peer.left = true;
    }
}

void Watch::Impl::take_other(const Frame& frame) {
    if (frame.kind == start) {
        const std::vector<std::string> names = unpack_texts(frame.data, names_.size());
        if (names.empty()) return;
        names_ = names;
        started_ = true;
        changed_.notify_all();
    } else if (frame.kind == pulse_of) {
        steps_[0] = number<std::uint64_t>(frame.data);
    } else if (frame.kind == value_of) {
        const std::vector<std::string> parts = unpack_texts(frame.data, 2);
        if (parts.empty()) return;
        store_[parts[0]] = parts[1];
        changed_.notify_all();
    } else if (frame.kind == failure_of) {
        const std::vector<std::string> parts = unpack_texts(frame.data, 4);
        if (parts.empty()) return;
        decide({number<int>(parts[0]), number<std::uint64_t>(parts[1]), number<int>(parts[2]),
                parts[3]});
    } else if (frame.kind == bye) {
        peers_[0].left = true;
    }
}

void Watch::Impl::take(Peer& peer, const Frame& frame) {
    peer.heard = Clock::now();
    if (is_first())
        take_first(peer, frame);
    else
        take_other(frame);
}

void Watch::Impl::lost(Peer& peer, const std::string& how) {
    peer.gone = true;
    if (peer.rank < 0 || peer.left || left_) return;
    // What it has said may be a second old. Steps need the sums of all, so that it was in the step
    // of this process, or in the one before or behind.
    const std::uint64_t step = std::max(steps_[static_cast<std::size_t>(peer.rank)],
                                        steps_[static_cast<std::size_t>(options_.rank)]);
    decide({peer.rank, step, lost_code, cat(name(peer.rank), " ", how, " in step ", step)});
}

/// What depends on the time.
void Watch::Impl::look_after() {
    const auto now = Clock::now();
    if (now - pulsed_ >= pulse) {
        pulsed_ = now;
        const std::uint64_t step = steps_[static_cast<std::size_t>(options_.rank)];
        for (Peer& peer : peers_)
            if (peer.rank >= 0) peer.link.send({pulse_of, cat(step)});
    }
    for (Peer& peer : peers_) {
        const Seconds silent = now - peer.heard;
        if (peer.gone) continue;
        if (peer.rank < 0 && silent > introduction) peer.gone = true;
        if (peer.rank >= 0 && silent > options_.silence)
            lost(peer, cat("has not answered for ", fixed(silent.count(), 0), " seconds"));
    }
    if (rumour_ && now - rumour_->second >= second_hand) decide(rumour_->first);
}

void Watch::Impl::run() {
    try {
        serve();
    } catch (const std::bad_alloc&) {
        run_out();
    }
}

/// Ends the watch without memory. The others hear that this process is lost, as its connections
/// end.
void Watch::Impl::run_out() noexcept {
    std::function<void(const Failure&)> call;
    {
        const std::lock_guard lock(mutex_);
        peers_.clear();
        listener_.close();
        if (fresh_ || !failure_) call.swap(call_);
        telling_ = call != nullptr;
        exhausted_.step = steps_[static_cast<std::size_t>(options_.rank)];
        if (!failure_) failure_.emplace(std::move(exhausted_));
    }
    try {
        if (call) call(*failure_);
    } catch (const std::exception&) {
        // Whoever waits is told by failure_, too.
    }
    told();
}

void Watch::Impl::told() noexcept {
    const std::lock_guard lock(mutex_);
    telling_ = false;
    changed_.notify_all();
}

void Watch::Impl::serve() {
    auto before = Clock::now();
    for (;;) {
        std::vector<pollfd> waits{{wake_[0], POLLIN, 0}};
        std::function<void(const Failure&)> call;
        std::size_t polled = 0;
        {
            const std::lock_guard lock(mutex_);
            for (Peer& peer : peers_)
                if (!peer.gone && !peer.link.flush()) lost(peer, "ended without a word");
            std::erase_if(peers_, [](const Peer& peer) { return peer.gone; });
            changed_.notify_all();
            if (fresh_ && call_) {
                call = call_;
                fresh_ = false;
                telling_ = true;
            }
            const bool idle = std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
                return peer.link.wants_to_send();
            });
            if (ends_ && (idle || Clock::now() > end_by_)) return;
            for (const Peer& peer : peers_)
                waits.push_back(
                    {peer.link.descriptor(),
                     static_cast<short>(POLLIN | (peer.link.wants_to_send() ? POLLOUT : 0)), 0});
            polled = peers_.size();
            if (listener_) waits.push_back({listener_.get(), POLLIN, 0});
        }
        if (call) {
            call(*failure_);
            told();
        }
        ::poll(waits.data(), waits.size(), 100);
        const std::lock_guard lock(mutex_);
        char bytes[64];
        while (::read(wake_[0], bytes, sizeof(bytes)) > 0) {
        }
        // A process that was stopped as a whole has not heard of others meanwhile.
        const auto now = Clock::now();
        if (now - before > Seconds(5))
            for (Peer& peer : peers_) peer.heard = now;
        before = now;
        for (std::size_t i = 0; i < polled; ++i) {
            std::vector<Frame> frames;
            const bool stands = peers_[i].link.receive(frames);
            for (const Frame& frame : frames)
                if (!peers_[i].gone) take(peers_[i], frame);
            if (!stands) lost(peers_[i], "ended without a word");
        }
        if (listener_) accept_all();
        look_after();
    }
}

Watch::Watch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Watch::~Watch() = default;

std::unique_ptr<Watch> Watch::listen(const Options& options, int port, bool local) {
    return std::unique_ptr<Watch>(
        new Watch(std::make_shared<Impl>(options, listen_on(port, local))));
}

std::unique_ptr<Watch> Watch::connect(const Options& options,
                                      const std::vector<std::string>& addresses, int port) {
    return std::unique_ptr<Watch>(
        new Watch(std::make_shared<Impl>(options, connect_to(addresses, port, options.start))));
}

int Watch::port() const {
    return impl_->port_;
}

std::vector<std::string> Watch::wait_for_all() {
    std::unique_lock lock(impl_->mutex_);
    // The first process knows who is missing, and may have begun to wait after this one did: the
    // others give its word the time to arrive.
    const Seconds most =
        impl_->is_first() ? impl_->options_.start : impl_->options_.start + 2 * second_hand;
    impl_->changed_.wait_for(lock, most, [&] { return impl_->started_ || impl_->failure_; });
    if (impl_->failure_) throw impl_->failure_->error();
    if (impl_->started_) return impl_->names_;
    std::vector<std::string> missing;
    for (std::size_t rank = 0; rank < impl_->names_.size(); ++rank)
        if (impl_->names_[rank].empty()) missing.push_back(cat(rank));
    if (!impl_->is_first())
        fail(ErrorKind::io, "the first process of the run does not begin within ",
             impl_->options_.start.count(), " seconds; others are missing");
    const bool one = missing.size() == 1;
    const std::string text =
        cat(one ? "rank " : "ranks ", join(missing, ", "), " of ", impl_->options_.size,
            one ? " has" : " have", " not come within ", impl_->options_.start.count(),
            " seconds: were they started, and do they reach this host?");
    // Those that have come hear of it, too.
    impl_->decide({leading_number(missing.at(0), 0), 0, lost_code, text});
    impl_->wake();
    throw Error(ErrorKind::io, text);
}

void Watch::set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(impl_->mutex_);
    if (impl_->is_first())
        impl_->put(key, value);
    else
        impl_->send({set_value, pack_texts({key, value})});
}

std::string Watch::get(const std::string& key) {
    std::unique_lock lock(impl_->mutex_);
    if (!impl_->is_first() && impl_->store_.count(key) == 0) impl_->send({get_value, key});
    impl_->changed_.wait_for(lock, impl_->options_.start,
                             [&] { return impl_->store_.count(key) > 0 || impl_->failure_; });
    if (impl_->failure_) throw impl_->failure_->error();
    if (impl_->store_.count(key) == 0)
        fail(ErrorKind::io, "no process of the run has set '", key, "' within ",
             impl_->options_.start.count(), " seconds");
    return impl_->store_[key];
}

void Watch::set_step(std::uint64_t step) {
    const std::lock_guard lock(impl_->mutex_);
    impl_->steps_[static_cast<std::size_t>(impl_->options_.rank)] = step;
}

void Watch::report(int code, const std::string& text, bool first_hand) {
    std::unique_lock lock(impl_->mutex_);
    if (impl_->failure_) return;
    const std::uint64_t step = impl_->steps_[static_cast<std::size_t>(impl_->options_.rank)];
    if (impl_->is_first())
        impl_->take_report(0, step, code, text, first_hand);
    else
        impl_->send({failed, pack_texts({cat(step), cat(code), first_hand ? "1" : "0", text})});
    impl_->wake();
    impl_->changed_.wait_for(lock, first_hand ? Seconds(1) : 2 * second_hand,
                             [&] { return impl_->failure_.has_value(); });
}

std::optional<Failure> Watch::failure() const {
    const std::lock_guard lock(impl_->mutex_);
    return impl_->failure_;
}

std::optional<Failure> Watch::wait_for_failure(std::chrono::duration<double> most) const {
    std::unique_lock lock(impl_->mutex_);
    impl_->changed_.wait_for(lock, most, [&] { return impl_->failure_is_told(); });
    return impl_->failure_;
}

void Watch::on_failure(std::function<void(const Failure&)> call) {
    const std::lock_guard lock(impl_->mutex_);
    impl_->call_ = std::move(call);
}

void Watch::leave() {
    const std::lock_guard lock(impl_->mutex_);
    impl_->leave();
}

}  // namespace dlprim
