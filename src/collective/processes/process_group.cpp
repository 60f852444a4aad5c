// SPDX-License-Identifier: MIT
// ProcessGroup.
#include "collective/processes/process_group.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/barrier.hpp"
#include "collective/processes/agent_store.hpp"
#include "collective/processes/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>

namespace dlprim {

namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds unlimited = longest_wait;
/// How long a process that is busy otherwise may take to notice a failure by itself.
constexpr Seconds grace{4};

std::string own_name() {
    char host[256] = {};
    if (::gethostname(host, sizeof(host) - 1) != 0) std::strcpy(host, "unknown");
    return cat("process ", ::getpid(), " on '", host, "'");
}

std::string random_token() {
    std::random_device random;
    return cat(random(), "-", random(), "-", random());
}

/// The address of this host that packets to another one bear; empty if it is not known.
std::string address_towards(const std::string& other) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(other.c_str(), "9", &hints, &found) != 0) return {};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        const Socket socket(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage own{};
        socklen_t length = sizeof(own);
        std::array<char, 256> text{};
        if (socket && ::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
            ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
            ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text.data(), text.size(),
                          nullptr, 0, NI_NUMERICHOST) == 0)
            return text.data();
    }
    return {};
}

constexpr const char* loopback = "127.0.0.1";

/// By what addresses the other processes reach this one, as far as that is known.
struct OwnAddresses {
    std::vector<std::string> all;
    bool local = false;  ///< whether they are for this host alone, as are all processes then
};

/// The name of a host often leads to an address that no other host reaches, as 127.0.1.1 of Debian.
OwnAddresses own_addresses(const RankPlace& place) {
    const auto loops = [](const std::string& address) { return address.rfind("127.", 0) == 0; };
    const std::string towards = address_towards(place.address);
    if (towards.empty()) return {};
    if (!loops(towards)) return {{towards}, false};
    if (place.address == "localhost" || loops(place.address) || place.local_size == place.size)
        return {{loopback}, true};
    return {addresses_of_host(), false};
}

/// The functions of a Watch's store for a plugin, which must not throw through it. There is no
/// store where the place has no address.
int set_in_store(void* store, const char* key, const void* data, std::size_t bytes) {
    if (store == nullptr) return 1;
    try {
        static_cast<Watch*>(store)->set(key, std::string(static_cast<const char*>(data), bytes));
        return 0;
    } catch (const std::exception&) {
        return 1;
    }
}

int get_from_store(void* store, const char* key, void* data, std::size_t room, std::size_t* bytes) {
    if (store == nullptr) return 1;
    try {
        const std::string value = static_cast<Watch*>(store)->get(key);
        if (value.size() > room) return 1;
        std::memcpy(data, value.data(), value.size());
        *bytes = value.size();
        return 0;
    } catch (const std::exception&) {
        return 1;
    }
}

/// The field by which names and values that follow each other differ at a place; empty if they do
/// not. Where one of them lacks the other's field, it is that field.
std::string name_of_difference(const std::vector<std::string>& first,
                               const std::vector<std::string>& other, std::size_t at) {
    const auto part = [](const std::vector<std::string>& from, std::size_t i) {
        return i < from.size() ? from[i] : std::string();
    };
    std::string one = part(first, at), two = part(other, at);
    if (one == two) return part(first, at + 1) == part(other, at + 1) ? std::string() : one;
    if (one.empty()) return two;
    for (std::size_t i = at; i < other.size(); i += 2)
        if (other[i] == one) return two;
    return one;
}

/// What a process has in a field that can be at that place alone. A long text is shortened.
std::string shown(const std::vector<std::string>& fields, const std::string& name, std::size_t at) {
    if (at + 1 >= fields.size() || fields[at] != name) return "not given";
    const std::string& value = fields[at + 1];
    if (value.empty()) return "none";
    return value.size() <= 80 ? value : value.substr(0, 77) + "...";
}

}  // namespace

struct ProcessGroup::Lost {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void(const Failure&)> call;
    bool left = false;
};

ProcessGroup::ProcessGroup(const RankPlace& place, Seconds deadline)
    : place_(place),
      deadline_(deadline),
      ended_(std::make_shared<std::atomic<bool>>(false)),
      lost_(std::make_shared<Lost>()) {
    const dlprim_transport& plugin = load_transport(place_.transport);
    if (place_.port > 0)
        meet_by_address(plugin);
    else
        meet_by_mpi(plugin);
    watch_->on_failure(
        [transport = transport_.get(), ended = ended_, lost = lost_](const Failure& failure) {
            *ended = true;
            transport->cancel();
            try {
                std::thread([lost, failure] {
                    std::unique_lock lock(lost->mutex);
                    if (lost->changed.wait_for(lock, grace, [&] { return lost->left; })) return;
                    if (lost->call) lost->call(failure);
                }).detach();
            } catch (const std::system_error&) {
                // There are no more threads. The process ends when its own thread notices.
            }
        });
    host_ = std::make_unique<SharedHost>(
        rank(), names_,
        [this](const std::string& own, const std::string& what) { return gather(own, what); },
        ended_);
}

ProcessGroup::~ProcessGroup() {
    {
        const std::lock_guard lock(lost_->mutex);
        lost_->left = true;
        lost_->changed.notify_all();
    }
}

Watch::Options ProcessGroup::options(const std::string& token) const {
    Watch::Options options;
    options.rank = place_.rank;
    options.size = place_.size;
    options.name = own_name();
    options.token = token;
    if (const auto seconds = env("DLPRIM_START_SECONDS")) {
        options.start = std::min(Seconds(leading_number(*seconds, 0.0)), longest_wait);
        require(options.start.count() > 0, "DLPRIM_START_SECONDS is '", *seconds,
                "': it must be a number of seconds above 0");
    }
    return options;
}

void* ProcessGroup::open(const dlprim_transport& plugin, const std::string& address) const {
    dlprim_transport_start start{};
    start.rank = place_.rank;
    start.size = place_.size;
    start.seconds = options("").start.count();
    start.address = address.c_str();
    start.store = watch_.get();
    start.set = set_in_store;
    start.get = get_from_store;
    std::array<char, 400> text{};
    void* const self = plugin.open(&start, {text.data(), text.size()});
    if (self != nullptr) return self;
    // It may be for want of a process that was lost or has failed meanwhile.
    const auto lost = watch_ ? watch_->wait_for_failure(Seconds(1)) : std::nullopt;
    if (lost) throw lost->error();
    fail(ErrorKind::device, plugin.name, " does not connect this process, rank ", place_.rank,
         " of a run started by ", place_.starter, ": ", text.data());
}

void ProcessGroup::meet_by_address(const dlprim_transport& plugin) {
    const Watch::Options how = options(place_.attempt);
    const std::string key = cat("/dlprim/", place_.attempt);
    const OwnAddresses own = own_addresses(place_);
    if (place_.rank == 0) {
        watch_ = Watch::listen(how, place_.has_agent ? 0 : place_.port, own.local);
        if (place_.has_agent)
            put_into_agent_store(
                place_.address, place_.port, key,
                cat(watch_->port(), " ", own.all.empty() ? place_.address : join(own.all, " ")),
                how.start);
    } else if (place_.has_agent) {
        const std::vector<std::string> words =
            split(get_from_agent_store(place_.address, place_.port, key, how.start), ' ');
        watch_ = Watch::connect(how, {words.begin() + 1, words.end()}, leading_number(words[0], 0));
    } else {
        watch_ =
            Watch::connect(how, {own.local ? std::string(loopback) : place_.address}, place_.port);
    }
    names_ = watch_->wait_for_all();
    void* const self = open(plugin, own.all.empty() ? "" : own.all.front());
    transport_ = std::make_unique<Transport>(plugin, self, place_.rank, names_);
}

void ProcessGroup::meet_by_mpi(const dlprim_transport& plugin) {
    void* const self = open(plugin, "");
    // The first one's port, a word that only the run's processes know, and its addresses.
    std::array<char, 1024> place{};
    const bool local = place_.local_size == place_.size;
    if (place_.rank == 0) {
        const std::string token = random_token();
        watch_ = Watch::listen(options(token), 0, local);
        const std::vector<std::string> addresses =
            local ? std::vector<std::string>{"127.0.0.1"} : addresses_of_host();
        const std::string text = cat(watch_->port(), " ", token, " ", join(addresses, " "));
        std::memcpy(place.data(), text.data(), std::min(text.size(), place.size() - 1));
    }
    const dlprim_piece piece{place.data(), place.size()};
    std::vector<dlprim_pieces> to(size(), {nullptr, 0}), from = to;
    if (place_.rank == 0)
        std::fill(to.begin() + 1, to.end(), dlprim_pieces{&piece, 1});
    else
        from[0] = {&piece, 1};
    std::array<char, 400> text{};
    if (plugin.exchange(self, to.data(), from.data(), options("").start.count(),
                        {text.data(), text.size()}) != DLPRIM_TRANSPORT_DONE)
        fail(ErrorKind::device, plugin.name,
             " does not reach the first process of the run: ", text.data());
    if (place_.rank > 0) {
        std::vector<std::string> words = split(place.data(), ' ');
        if (words.size() < 3)
            fail(ErrorKind::device, plugin.name,
                 " has not brought the address of the first process of the run");
        watch_ = Watch::connect(options(words[1]), {words.begin() + 2, words.end()},
                                leading_number(words[0], 0));
    }
    names_ = watch_->wait_for_all();
    transport_ = std::make_unique<Transport>(plugin, self, place_.rank, names_);
}

void ProcessGroup::call(const std::function<void()>& work) {
    std::string why;
    try {
        if (!watch_->failure()) return work();
    } catch (const Error& error) {
        why = error.what();
    }
    // Who failed first is known soon, if it is not this process that found it.
    if (!why.empty()) watch_->report(lost_code, why, false);
    if (const std::optional<Failure> failure = watch_->failure()) throw failure->error();
    fail(ErrorKind::device, why);
}

Seconds ProcessGroup::limit(Wait wait) const {
    return wait == Wait::deadline ? deadline_ : unlimited;
}

void ProcessGroup::exchange(const std::vector<Pieces>& to, const std::vector<Pieces>& from,
                            const std::string& what, Wait wait) {
    call([&] { transport_->exchange(to, from, what, limit(wait)); });
}

void ProcessGroup::allreduce(float* values, std::uint64_t count, const std::string& what) {
    call([&] { transport_->allreduce(values, count, what, deadline_); });
}

void ProcessGroup::meet_on_host(const std::string& what, std::uint64_t bytes, Wait wait) {
    call([&] { host_->meet(what, bytes, limit(wait), [&] { transport_->progress(); }); });
}

void ProcessGroup::broadcast(void* data, std::uint64_t bytes, const std::string& what) {
    call([&] { transport_->broadcast(0, data, bytes, what, unlimited); });
}

void ProcessGroup::allgather(const void* own, std::uint64_t bytes, void* all,
                             const std::string& what) {
    call([&] { transport_->allgather(own, bytes, all, what, unlimited); });
}

void ProcessGroup::barrier(const std::string& what) {
    call([&] { transport_->barrier(what, unlimited); });
}

std::vector<std::string> ProcessGroup::gather(const std::string& own, const std::string& what) {
    std::vector<std::string> all(size());
    call([&] {
        const std::uint64_t length = own.size();
        std::vector<std::uint64_t> lengths(size());
        transport_->allgather(&length, sizeof(length), lengths.data(), what, unlimited);
        std::vector<Pieces> to(size()), from(size());
        std::string sent = own;
        for (std::size_t i = 0; i < size(); ++i) {
            all[i] = i == rank() ? own : std::string(lengths[i], 0);
            if (i == rank()) continue;
            to[i] = {{reinterpret_cast<std::byte*>(sent.data()), length}};
            from[i] = {{reinterpret_cast<std::byte*>(all[i].data()), lengths[i]}};
        }
        transport_->exchange(to, from, what, unlimited);
    });
    return all;
}

std::string ProcessGroup::share(std::string text, const std::string& what) {
    std::uint64_t length = text.size();
    broadcast(&length, sizeof(length), what);
    text.resize(length);
    if (length > 0) broadcast(text.data(), length, what);
    return text;
}

void ProcessGroup::agree(const Fields& fields) {
    std::string own;
    for (const auto& [name, value] : fields) own += cat(name, '\0', value, '\0');
    const std::vector<std::string> all = gather(own, "what the processes are to compute");
    const std::vector<std::string> first = split(all[0], '\0');
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const std::vector<std::string> other = split(all[rank], '\0');
        for (std::size_t i = 0; i + 1 < std::max(first.size(), other.size()); i += 2) {
            const std::string name = name_of_difference(first, other, i);
            if (name.empty()) continue;
            common_error_ = cat("the processes of the run disagree: ", name, " is ",
                                shown(first, name, i), " for rank 0 (", names_[0], ") and ",
                                shown(other, name, i), " for rank ", rank, " (", names_[rank], ")");
            // All processes end by this; who goes first has not failed for that.
            watch_->leave();
            throw Error(ErrorKind::invalid_argument, common_error_);
        }
    }
}

Failure ProcessGroup::failed(int code, const std::string& text) {
    if (!common_error_.empty() && text == common_error_) return {place_.rank, 0, code, text};
    watch_->report(code, text, true);
    if (const std::optional<Failure> failure = watch_->failure()) return *failure;
    return {place_.rank, 0, code, text};
}

void ProcessGroup::on_lost(std::function<void(const Failure&)> call) {
    const std::lock_guard lock(lost_->mutex);
    lost_->call = std::move(call);
}

void ProcessGroup::leave() {
    barrier("the end of the run");
    watch_->leave();
    transport_->close();
}

}  // namespace dlprim
