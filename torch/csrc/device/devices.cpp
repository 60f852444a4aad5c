// SPDX-License-Identifier: MIT
// See devices.hpp.
#include "device/devices.hpp"

#include "device/errors.hpp"

#include <c10/util/CallOnce.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace dlprim_torch {
namespace {

/// What is known of the machine. It is never destroyed, since tensors may outlive static objects.
struct Devices {
    std::vector<dp::DeviceInfo> infos;
    std::string why;
    std::mutex mutex;
    std::vector<std::optional<dp::Context>> contexts;
};

std::atomic<bool> any_opened{false};
std::atomic<bool> bad_fork{false};
std::atomic<bool> exiting{false};
thread_local int current = 0;

/// Where devices of a kind stand: one process for each device of a machine is to find its GPUs
/// before its processor, whichever platform comes first.
int order_of(dp::DeviceKind kind) {
    return kind == dp::DeviceKind::gpu ? 0 : kind == dp::DeviceKind::accelerator ? 1 : 2;
}

void find_devices(Devices& found) {
    for (dp::DeviceInfo& info : dp::Context::devices())
        if (info.kind != dp::DeviceKind::host) found.infos.push_back(std::move(info));
    std::stable_sort(found.infos.begin(), found.infos.end(),
                     [](const dp::DeviceInfo& a, const dp::DeviceInfo& b) {
                         return order_of(a.kind) < order_of(b.kind);
                     });
    if (found.infos.empty()) {
        for (const std::string& trouble : dp::Context::troubles())
            found.why += (found.why.empty() ? "" : " ") + trouble;
        if (found.why.empty())
            found.why =
                "There is no OpenCL device. Install a driver of your GPU, or one of the CPU such "
                "as "
                "Debian's pocl-opencl-icd.";
        return;
    }
    const char* named = std::getenv("DLPRIM_DEVICE");
    dp::DeviceInfo first = dp::Context::find("opencl");
    if (named != nullptr && *named != '\0') {
        const dp::DeviceInfo info = dp::Context::find(named);
        if (info.kind != dp::DeviceKind::host) first = info;
    }
    const auto at = std::find_if(found.infos.begin(), found.infos.end(),
                                 [&](const dp::DeviceInfo& info) { return info.id == first.id; });
    if (at != found.infos.end()) std::rotate(found.infos.begin(), at, at + 1);
}

Devices& all() noexcept {
    static Devices* const found = [] {
        auto* const made = new Devices;
        try {
            find_devices(*made);
        } catch (const std::exception& error) {
            made->infos.clear();
            made->why = error.what();
        }
        made->contexts.resize(made->infos.size());
        pthread_atfork(nullptr, nullptr, [] {
            if (any_opened.load()) bad_fork.store(true);
        });
        return made;
    }();
    return *found;
}

std::string names_of_devices() {
    std::string text;
    for (std::size_t i = 0; i < devices().size(); ++i)
        text += (i == 0 ? "ocl:" : ", ocl:") + std::to_string(i) + " is " + devices()[i].name;
    return text;
}

void check_device(int device) {
    TORCH_CHECK(device_count() > 0, "There is no device \"ocl\". ", why());
    TORCH_CHECK(device >= 0 && device < device_count(), "There is no device ocl:", device,
                ". Those that are there: ", names_of_devices(), ".");
}

}  // namespace

const std::vector<dp::DeviceInfo>& devices() noexcept {
    return all().infos;
}

int device_count() noexcept {
    return static_cast<int>(std::min<std::size_t>(devices().size(), 127));
}

std::string why() {
    return all().why;
}

const dp::Context& context(int device) {
    check_process();
    Devices& found = all();
    check_device(device);
    std::optional<dp::Context>& own = found.contexts[static_cast<std::size_t>(device)];
    const std::lock_guard lock(found.mutex);
    if (!own) {
        any_opened.store(true);
        try {
            own.emplace(found.infos[static_cast<std::size_t>(device)].id);
        } catch (const dp::Error& error) {
            throw_translated(error);
        }
    }
    return *own;
}

std::optional<dp::Context> opened(int device) {
    if (in_bad_fork() || device < 0 || device >= device_count()) return std::nullopt;
    Devices& found = all();
    const std::lock_guard lock(found.mutex);
    return found.contexts[static_cast<std::size_t>(device)];
}

int current_device() noexcept {
    return current;
}

void set_current_device(int device) {
    if (device != current) check_device(device);
    current = device;
}

void set_current_device_unchecked(int device) noexcept {
    current = device;
}

void synchronize(int device) {
    if (const std::optional<dp::Context> own = opened(device))
        translated([&] { own->finish(); }, true);
}

void empty_cache(int device) noexcept {
    const std::optional<dp::Context> own = opened(device);
    if (!own) return;
    try {
        own->release_cached();
    } catch (const std::exception& error) {
        // What work before has done wrong is told when the program waits for it.
        TORCH_WARN_ONCE("The device \"ocl\" keeps its cached memory: ", error.what());
    }
}

void check_process() {
    TORCH_CHECK(
        !in_bad_fork(),
        "The device \"ocl\" cannot be used in a forked process, since it was used before the "
        "fork. Use multiprocessing's start method 'spawn', as in "
        "torch.multiprocessing.set_start_method('spawn').");
}

bool in_bad_fork() noexcept {
    return bad_fork.load(std::memory_order_relaxed);
}

bool may_free() noexcept {
    return !in_bad_fork() && !exiting.load(std::memory_order_relaxed);
}

void shut_down() noexcept {
    try {
        for (int i = 0; i < (any_opened.load() ? device_count() : 0); ++i)
            if (const std::optional<dp::Context> own = opened(i)) own->finish();
    } catch (...) {  // Nobody is left who could be told.
    }
    exiting.store(true);
}

}  // namespace dlprim_torch
