// SPDX-License-Identifier: MIT
// See staging.hpp. The host's memory stays alive until the device is done with it: each copy looks
// which of the earlier ones are done.
#include "memory/staging.hpp"

#include "device/errors.hpp"
#include "memory/pinned.hpp"

#include <dlprim/event.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dlprim_torch {
namespace {

// More than that is waited for, which then costs little beside the copy.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

struct Pending {
    dp::Event done;
    at::Tensor values;
    std::shared_ptr<void> pinned;
};

class Staging {
  public:
    void keep(int device, Pending copy) {
        if (copy.done.done()) return;
        const std::lock_guard lock(mutex_);
        std::deque<Pending>& pending = pending_[device];
        while (!pending.empty() && pending.front().done.done()) pending.pop_front();
        pending.push_back(std::move(copy));
    }

  private:
    std::mutex mutex_;
    std::unordered_map<int, std::deque<Pending>> pending_;
};

// Leaked: at exit the device may still read.
Staging& staging() {
    static auto* const kept = new Staging;
    return *kept;
}

}  // namespace

void copy_from_host(at::Tensor values, bool own, dp::Tensor& target, int device) {
    const std::size_t bytes = values.nbytes();
    if (bytes > most_bytes || !target.contiguous()) {
        translated([&] { target.copy_from_host(values.const_data_ptr(), bytes); }, true);
        return;
    }
    if (!own) values = values.clone();
    dp::Event read =
        translated([&] { return target.copy_from_host_async(values.const_data_ptr(), bytes); });
    staging().keep(device, {std::move(read), std::move(values), nullptr});
}

bool copy_from_pinned(const at::Tensor& values, dp::Tensor& target, int device) {
    std::shared_ptr<void> block = pinned_block(values.const_data_ptr());
    if (block == nullptr || !target.contiguous()) return false;
    dp::Event done = translated(
        [&] { return target.copy_from_host_async(values.const_data_ptr(), values.nbytes()); });
    staging().keep(device, {std::move(done), {}, std::move(block)});
    return true;
}

bool copy_to_pinned(const dp::Tensor& source, const at::Tensor& values, int device) {
    std::shared_ptr<void> block = pinned_block(values.const_data_ptr());
    if (block == nullptr || !source.contiguous()) return false;
    dp::Event done = translated(
        [&] { return source.copy_to_host_async(values.mutable_data_ptr(), values.nbytes()); });
    staging().keep(device, {std::move(done), {}, std::move(block)});
    return true;
}

}  // namespace dlprim_torch
