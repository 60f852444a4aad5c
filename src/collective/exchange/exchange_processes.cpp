// SPDX-License-Identifier: MIT
// Exchange: what ranks of several processes do beyond what those of one do. The first rank of each
// process exchanges for all of them, so that the transport has one caller. What it brings lies in
// host memory, where all ranks of the process read it.
#include "collective/exchange/exchange.hpp"

#include "base/text.hpp"
namespace dlprim {

void Exchange::learn_numbers() {
    own_.end = contexts_.size();
    if (!group_) return;
    const std::uint64_t own = contexts_.size();
    std::vector<std::uint64_t> counts(group_->size());
    group_->allgather(&own, sizeof(own), counts.data(), "how many devices each process has");
    std::size_t next = 0;
    for (const std::uint64_t count : counts) {
        processes_.push_back({next, next + count});
        next += count;
    }
    own_ = processes_[group_->rank()];
}

std::size_t Exchange::process_of(std::size_t number) const {
    std::size_t process = 0;
    while (!processes_[process].has(number)) ++process;
    return process;
}

void Exchange::await_transport(std::size_t rank, const std::string& what) {
    if (group_ && contexts_.size() > 1)
        barrier_->arrive(rank, "for the first device of this process to bring " + what);
}

}  // namespace dlprim
