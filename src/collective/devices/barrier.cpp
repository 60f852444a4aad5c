// SPDX-License-Identifier: MIT
// Barrier.
#include "collective/devices/barrier.hpp"

#include "base/spin.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

Barrier::Barrier(std::vector<std::string> names, std::chrono::duration<double> deadline)
    : names_(std::move(names)), deadline_(std::min(deadline, longest_wait)) {
    for (Meeting& meeting : meetings_) meeting.here.assign(names_.size(), false);
}

void Barrier::throw_failure() const {
    throw Error(kind_, failure_);
}

void Barrier::set_failure(ErrorKind kind, std::string text) {
    if (failed_) return;
    failed_ = true;
    kind_ = kind;
    failure_ = std::move(text);
    ++changes_;
    changed_.notify_all();
}

void Barrier::arrive(std::size_t rank, const std::string& what, Lane lane) {
    std::unique_lock lock(mutex_);
    auto& [here, named, first, passed] = meetings_[lane];
    if (failed_) throw_failure();
    const std::size_t before = static_cast<std::size_t>(std::count(here.begin(), here.end(), true));
    if (before == 0) {
        named = what;
        first = rank;
    }
    if (named != what) {
        set_failure(ErrorKind::device,
                    cat(names_[rank], " waits ", what, ", but ", names_[first], " waits ", named,
                        ": the devices do not run the same steps"));
        throw_failure();
    }
    here[rank] = true;
    if (before + 1 == names_.size()) {
        here.assign(names_.size(), false);
        ++passed;
        ++changes_;
        changed_.notify_all();
        return;
    }
    const std::uint64_t mine = passed, seen = changes_;
    lock.unlock();
    spin_until([&] { return changes_ != seen; }, spin_);
    lock.lock();
    const bool came =
        changed_.wait_for(lock, deadline_, [&, &now = passed] { return failed_ || now != mine; });
    if (passed != mine) return;
    if (!came) {
        std::vector<std::string> missing;
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (!here[i]) missing.push_back(names_[i]);
        set_failure(ErrorKind::device,
                    cat(join(missing, ", "), " did not come ", what, " within ", deadline_.count(),
                        " seconds: look after the device, or set a longer deadline"));
    }
    throw_failure();
}

void Barrier::fail(std::size_t rank, const Error& error) {
    const std::lock_guard lock(mutex_);
    set_failure(error.kind(), cat(names_.at(rank), ": ", error.what()));
}

void Barrier::check() {
    const std::lock_guard lock(mutex_);
    if (failed_) throw_failure();
}

}  // namespace dlprim
