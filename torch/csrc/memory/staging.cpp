// SPDX-License-Identifier: MIT
// See staging.hpp. Values stay alive until the device has read them: each copy looks which of the
// earlier ones are done.
#include "memory/staging.hpp"

#include "device/errors.hpp"

#include <dlprim/event.hpp>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dlprim_torch {
namespace {

// More than that is waited for, which then costs little beside the copy.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

struct Pending {
    dp::Event read;
    at::Tensor values;
};

class Staging {
  public:
    void keep(int device, dp::Event read, at::Tensor values) {
        const std::lock_guard lock(mutex_);
        std::deque<Pending>& pending = pending_[device];
        while (!pending.empty() && pending.front().read.done()) pending.pop_front();
        pending.push_back({std::move(read), std::move(values)});
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
    if (!read.done()) staging().keep(device, std::move(read), std::move(values));
}

}  // namespace dlprim_torch
