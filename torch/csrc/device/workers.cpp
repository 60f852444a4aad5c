// SPDX-License-Identifier: MIT
// See workers.hpp. A thread lets go of a pass before it takes the next from its queue, so that an
// empty pass that it has taken comes after all others.
#include "device/workers.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>

namespace dlprim_torch {
namespace {

const std::thread::id main_thread = std::this_thread::get_id();
std::atomic<std::uint64_t> workers{0};  // a bit for each device

struct EmptyPass final : torch::autograd::Node {
    torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

/// Held as this PyTorch holds its nodes: by std::shared_ptr in 2.11, by an intrusive pointer later.
template <typename Pointer, typename Pass = EmptyPass>
Pointer make_pass() {
    if constexpr (std::is_constructible_v<Pointer, std::shared_ptr<Pass>>)
        return std::make_shared<Pass>();
    else
        return c10::make_intrusive<Pass>();
}

void pass_through(int device) {
    const at::Tensor nothing =
        at::empty({0}, at::TensorOptions(c10::Device(c10::DeviceType::PrivateUse1,
                                                     static_cast<c10::DeviceIndex>(device))));
    const auto pass = make_pass<decltype(torch::autograd::Edge::function)>();
    pass->add_input_metadata(nothing);
    torch::autograd::Engine::get_default_engine().execute({torch::autograd::Edge(pass, 0)},
                                                          {nothing}, false, false, true);
}

}  // namespace

void note_worker(int device) noexcept {
    if (device < 64 && std::this_thread::get_id() != main_thread)
        workers.fetch_or(std::uint64_t{1} << device, std::memory_order_relaxed);
}

void settle_workers(std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    const std::uint64_t all = workers.load();
    for (int device = 0; device < 64; ++device) {
        if ((all >> device & 1) == 0) continue;
        auto done = std::make_shared<std::promise<void>>();
        const std::future<void> passed = done->get_future();
        // A thread of its own, which goes on where the time is over.
        std::thread([done, device] {
            try {
                pass_through(device);
            } catch (const std::exception&) {
                // There is nothing to wait for.
            }
            done->set_value();
        }).detach();
        passed.wait_until(end);
    }
}

}  // namespace dlprim_torch
