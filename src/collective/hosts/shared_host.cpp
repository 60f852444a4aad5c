// SPDX-License-Identifier: MIT
// SharedHost. Each process has a page in its memory, in which it says how many barriers it has
// reached and what for. The others wait for that number by a futex, and then compare.
#include "collective/hosts/shared_host.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace dlprim {

namespace {

std::uint64_t random_number() {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
}

/// DLPRIM_HOST gives processes of a host several names, so that tests see several hosts.
std::string name_of_host() {
    std::string boot;
    try {
        boot = read_file("/proc/sys/kernel/random/boot_id");
    } catch (const Error&) {
        char name[256] = {};
        ::gethostname(name, sizeof(name) - 1);
        boot = name;
    }
    return cat(boot.substr(0, boot.find('\n')), "/", env("DLPRIM_HOST").value_or(""));
}

/// What a process answers that has read another's number.
std::uint64_t answer_to(std::uint64_t number, std::size_t process) {
    return number * 0x9e3779b97f4a7c15 + process + 1;
}

struct Message {
    std::uint64_t bytes;
    char what[112];
};

}  // namespace

/// The first memory of a process. Messages of two barriers that follow each other have a place
/// each: who has reached the next one has read all of this one.
struct SharedHost::Control {
    std::uint64_t number;  ///< a random one, for the probe
    SharedCounter reached;
    Message messages[2];

    static std::uint64_t bytes(std::size_t processes) {
        return sizeof(Control) + processes * sizeof(std::uint64_t);
    }
    /// What a process answers to the number, behind the object.
    std::uint64_t& answer(std::size_t process) {
        return reinterpret_cast<std::uint64_t*>(this + 1)[process];
    }
};

SharedHost::SharedHost(std::size_t rank, std::vector<std::string> names, const Gather& gather,
                       std::shared_ptr<const std::atomic<bool>> ended)
    : rank_(rank), names_(std::move(names)), ended_(std::move(ended)), all_(names_.size()) {
    std::string trouble;
    std::uint64_t number = 0;
    int descriptor = -1;
    try {
        if (!env_flag("DLPRIM_SHARED").value_or(true))
            fail(ErrorKind::unsupported, "DLPRIM_SHARED is 0");
        own_ = std::make_unique<SharedMemory>();
        all_[rank_].control = own_->grow(Control::bytes(names_.size()));
        number = control(rank_).number = random_number();
        descriptor = own_->descriptor();
    } catch (const Error& error) {
        trouble = error.what();
    }
    const std::vector<std::string> places = gather(
        cat(name_of_host(), " ", ::getpid(), " ", descriptor, " ", number), "where they run");
    find_hosts(places);
    // Each opens the memory of the others and answers there; then each looks for their answers.
    if (trouble.empty() && is_shared()) trouble = open_mates(places);
    agree(gather(trouble, "whether they open each other's memory"));
    if (is_shared()) trouble = check_answers();
    agree(gather(trouble, "whether they share memory"));
    if (is_shared()) return;
    own_.reset();
    all_.clear();
}

SharedHost::~SharedHost() = default;

void SharedHost::find_hosts(const std::vector<std::string>& places) {
    std::vector<std::string> known;
    for (const std::string& place : places) {
        const std::string name = place.substr(0, place.find(' '));
        const auto found = std::find(known.begin(), known.end(), name);
        hosts_.push_back(static_cast<std::size_t>(found - known.begin()));
        if (found == known.end()) known.push_back(name);
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        if (hosts_[i] == hosts_[rank_]) mates_.push_back(i);
    for (const std::size_t host : hosts_)
        shared_.push_back(std::count(hosts_.begin(), hosts_.end(), host) > 1);
}

/// Takes back that a host shares memory where one of its processes has trouble.
void SharedHost::agree(const std::vector<std::string>& troubles) {
    const std::vector<bool> before = shared_;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (troubles[i].empty() || !before[i]) continue;
        if (reason_.empty()) reason_ = troubles[i];
        for (std::size_t mate = 0; mate < hosts_.size(); ++mate)
            if (hosts_[mate] == hosts_[i]) shared_[mate] = false;
    }
}

SharedHost::Control& SharedHost::control(std::size_t process) const {
    return *reinterpret_cast<Control*>(all_[process].control.get());
}

std::string SharedHost::open_mates(const std::vector<std::string>& places) {
    for (const std::size_t process : mates_) {
        const std::vector<std::string> words = split(places[process], ' ');
        const int descriptor = leading_number(words.at(2), -1);
        if (descriptor < 0) return "";  // the process says why
        try {
            Mate& mate = all_[process];
            mate.id = leading_number(words[1], 0);
            mate.memory = std::make_unique<SharedMemory>(mate.id, descriptor);
            mate.control = mate.memory->follow(Control::bytes(names_.size()));
        } catch (const Error& error) {
            return cat(names_[rank_], " does not reach memory of ", names_[process], ": ",
                       error.what());
        }
        const std::uint64_t number = control(process).number;
        if (number != leading_number<std::uint64_t>(words.at(3), 0))
            return cat(names_[rank_], " finds other memory than that of ", names_[process]);
        control(process).answer(rank_) = answer_to(number, rank_);
    }
    return "";
}

std::string SharedHost::check_answers() const {
    for (const std::size_t process : mates_)
        if (control(rank_).answer(process) != answer_to(control(rank_).number, process))
            return cat(names_[rank_], " does not find what ", names_[process],
                       " has written to its memory");
    return "";
}

SharedMemory::Part SharedHost::make(std::uint64_t bytes) {
    return own_->grow(bytes);
}

SharedMemory::Part SharedHost::reach(std::size_t process, std::uint64_t bytes) {
    return all_.at(process).memory->follow(bytes);
}

void SharedHost::meet(const std::string& what, std::uint64_t bytes,
                      std::chrono::duration<double> deadline,
                      const std::function<void()>& meanwhile) {
    Control& own = control(rank_);
    Message& message = own.messages[number_ % 2];
    message = {};
    message.bytes = bytes;
    std::memcpy(message.what, what.data(), std::min(what.size(), sizeof(message.what) - 1));
    own.reached.set(number_ + 1);
    for (const std::size_t process : mates_)
        if (process != rank_) await(process, what, meanwhile, deadline);
    for (const std::size_t process : mates_)
        if (process != rank_) compare(process);
    ++number_;
}

void SharedHost::await(std::size_t process, const std::string& what,
                       const std::function<void()>& meanwhile,
                       std::chrono::duration<double> deadline) {
    using std::chrono::milliseconds;
    // What ends the wait otherwise is looked after now and then.
    const milliseconds interval(meanwhile ? 1 : 20);
    control(process).reached.await(number_ + 1, interval, [&](auto waited) -> std::string {
        if (*ended_) return cat("was stopped while it waited for ", what);
        if (waited > deadline)
            return cat(names_[process], " did not come for ", what, " within ", deadline.count(),
                       " seconds: look after it, or set a longer deadline");
        if (meanwhile) meanwhile();
        return "";
    });
}

void SharedHost::compare(std::size_t process) const {
    const Message &own = control(rank_).messages[number_ % 2],
                  &theirs = control(process).messages[number_ % 2];
    if (own.bytes == theirs.bytes && std::memcmp(own.what, theirs.what, sizeof(own.what)) == 0)
        return;
    const auto text = [&](const Message& message) {
        return cat("waits for ",
                   std::string(message.what, ::strnlen(message.what, sizeof(message.what))),
                   " (barrier ", number_, " of its host, ", message.bytes, " bytes)");
    };
    fail(ErrorKind::device, names_[process], " ", text(theirs), ", but ", names_[rank_], " ",
         text(own), ": the processes do not run the same steps");
}

}  // namespace dlprim
