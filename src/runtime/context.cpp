// SPDX-License-Identifier: MIT
// Context: chooses a device by text, and is the public interface of ContextImpl.
#include <dlprim/context.hpp>

#include "base/env.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "runtime/counting.hpp"
#include "runtime/device_file.hpp"
#include "runtime/devices.hpp"
#include "runtime/pocl_cache.hpp"
#include "runtime/put_off_calls.hpp"

#include <dlprim/log.hpp>

#include <algorithm>

namespace dlprim {
namespace {

std::string lowered(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = ascii::lower(c);
    return result;
}

// The best device first: GPUs, then accelerators, then CPUs, and within a kind by estimated peak.
std::vector<const OpenCLDevice*> ranked() {
    std::vector<const OpenCLDevice*> devices;
    for (const OpenCLDevice& device : opencl_devices()) devices.push_back(&device);
    const auto rank = [](const OpenCLDevice* device) {
        return device->info.kind == DeviceKind::gpu   ? 2
               : device->info.kind == DeviceKind::cpu ? 0
                                                      : 1;
    };
    std::stable_sort(devices.begin(), devices.end(), [&](const auto* a, const auto* b) {
        return rank(a) != rank(b) ? rank(a) > rank(b) : a->traits.gflops > b->traits.gflops;
    });
    return devices;
}

[[noreturn]] void not_found(std::string_view wanted, std::string_view origin) {
    std::string list, help;
    for (const DeviceInfo& info : Context::devices())
        list += cat(list.empty() ? "" : ", ", info.id, " = ", info.name,
                    info.kind == DeviceKind::host ? " (the host)" : cat(" (", info.platform, ")"));
    for (const std::string& trouble : opencl_troubles()) help += cat("; ", trouble);
    if (opencl_devices().empty() && help.empty())
        help =
            "; no OpenCL platform is installed: on Debian or Ubuntu `apt install "
            "pocl-opencl-icd` gives one, and device cpu (the host) works without";
    fail(ErrorKind::not_found, "there is no device '", wanted, "'", origin,
         is_path_like(wanted) ? ", which seems to be the path of a file" : "",
         "; there are: ", list, help);
}

bool is_number_pair(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return ascii::is_digit(c) || c == ':'; });
}

// Why the device cannot be opened, as far as that is known in advance; empty if nothing is known.
std::string trouble_of(const OpenCLDevice& device) {
    const std::string trouble =
        is_pocl(device.platform_version) ? pocl_cache_trouble() : std::string();
    return trouble.empty() ? "" : cat("device ", device.info.str(), " does not open: ", trouble);
}

std::shared_ptr<ContextImpl> opened(const OpenCLDevice& device) {
    if (const std::string trouble = trouble_of(device); !trouble.empty())
        fail(ErrorKind::io, trouble);
    return make_opencl_context(device);
}

std::shared_ptr<ContextImpl> open_default() {
    const std::vector<const OpenCLDevice*> devices = ranked();
    for (std::size_t i = 0; i < devices.size(); ++i) {
        try {
            return opened(*devices[i]);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::invalid_argument)
                throw;  // the environment is wrong, not the device
            const DeviceInfo next = i + 1 < devices.size() ? devices[i + 1]->info : host_info();
            log(LogLevel::warning,
                cat("device ", next.str(), " is taken in place of a better one: ", error.what()));
        }
    }
    for (const std::string& trouble : opencl_troubles())
        log(LogLevel::warning,
            cat("device ", host_info().str(), " is taken in place of OpenCL: ", trouble));
    return make_host_context();
}

// Whether a part of a name, in lower case, identifies this device. The platform's version is
// checked last, because only there PoCL reports that it is PoCL.
bool names_device(const OpenCLDevice& device, const std::string& name, bool by_version) {
    const auto holds = [&](const std::string& text) {
        return lowered(text).find(name) != std::string::npos;
    };
    if (by_version) return holds(device.platform_version);
    return holds(device.info.name) || holds(device.info.platform);
}

// The device that a text identifies, or nullptr for the host. `origin` says in messages where the
// text came from.
const OpenCLDevice* chosen(std::string_view wanted, std::string_view origin) {
    if (wanted == "cpu" || wanted == "host") return nullptr;
    const std::string name = lowered(wanted);
    const bool by_place = is_number_pair(wanted);
    for (const bool by_version : {false, true}) {
        for (const OpenCLDevice* device : ranked()) {
            const bool match = by_place           ? device->info.id == wanted
                               : name == "opencl" ? true
                               : name == "gpu"    ? device->info.kind == DeviceKind::gpu
                                                  : names_device(*device, name, by_version);
            if (match) return device;
        }
    }
    not_found(wanted, origin);
}

// The text that the caller gives, else that of the environment. Empty: the default device.
struct Choice {
    explicit Choice(std::string_view device) : text(device) {
        if (!text.empty()) return;
        text = env("DLPRIM_DEVICE").value_or("");
        if (!text.empty()) origin = " (from DLPRIM_DEVICE)";
    }
    /// The path of a described device's file, or empty.
    std::string described() const {
        constexpr std::string_view scheme = "file:";
        return text.compare(0, scheme.size(), scheme) == 0 ? text.substr(scheme.size())
                                                           : std::string();
    }
    std::string text, origin;
};

}  // namespace

std::string DeviceInfo::str() const {
    return cat(id, " (", name, ", ", kind == DeviceKind::host ? "the host" : platform, ")");
}

std::string_view name_of(DeviceKind kind) {
    constexpr std::string_view names[] = {"host", "cpu", "gpu", "accelerator"};
    return names[static_cast<std::size_t>(kind)];
}

Context::Context(std::string_view device) {
    const Choice choice(device);
    if (choice.text.empty()) {
        impl_ = ContextImpl::for_users(open_default());
    } else if (const std::string path = choice.described(); !path.empty()) {
        impl_ = ContextImpl::for_users(make_described_context(read_device_file(path)));
    } else {
        const OpenCLDevice* found = chosen(choice.text, choice.origin);
        impl_ = ContextImpl::for_users(found == nullptr ? make_host_context() : opened(*found));
    }
}

DeviceInfo Context::find(std::string_view device) {
    const Choice choice(device);
    if (const std::string path = choice.described(); !path.empty())
        return read_device_file(path).info;
    if (!choice.text.empty()) {
        const OpenCLDevice* found = chosen(choice.text, choice.origin);
        return found == nullptr ? host_info() : found->info;
    }
    for (const OpenCLDevice* one : ranked())
        if (trouble_of(*one).empty()) return one->info;
    return host_info();
}

std::vector<std::string> Context::troubles() {
    std::vector<std::string> all = opencl_troubles();
    for (const OpenCLDevice& device : opencl_devices())
        if (std::string trouble = trouble_of(device); !trouble.empty())
            all.push_back(std::move(trouble));
    return all;
}

std::vector<DeviceInfo> Context::devices() {
    std::vector<DeviceInfo> infos;
    for (const OpenCLDevice& device : opencl_devices()) infos.push_back(device.info);
    infos.push_back(host_info());
    return infos;
}

const DeviceInfo& Context::info() const {
    return impl_->info();
}
const Traits& Context::traits() const {
    return impl_->traits();
}

Counters Context::counters() const {
    settle_calls(impl_->queue());
    Counters& live = impl_->counters();
    Counters copy;
    copy.launches = counted(live.launches);
    copy.waits = counted(live.waits);
    copy.allocations = counted(live.allocations);
    copy.compiles = counted(live.compiles);
    copy.cache_hits = counted(live.cache_hits);
    copy.flushes = counted(live.flushes);
    copy.allocated_bytes = counted(live.allocated_bytes);
    return copy;
}

ContextImpl::Attachment& ContextImpl::attachment(std::unique_ptr<Attachment> (*make)()) {
    const std::lock_guard lock(attachment_mutex_);
    if (!attachment_) attachment_ = make();
    return *attachment_;
}

std::shared_ptr<ContextImpl> ContextImpl::for_users(std::shared_ptr<ContextImpl> impl) {
    // The attachment refers to the context that owns it. So it is destroyed with the last handle of
    // a user, after which nobody can ask for it.
    ContextImpl* const opened = impl.get();
    return {opened, [owner = std::move(impl)](ContextImpl*) { owner->attachment_.reset(); }};
}

void ContextImpl::require_runs() const {
    if (is_described())
        fail(ErrorKind::unsupported, "device ", info_.str(),
             " is described by a file and runs no kernels; networks can be planned for it, and "
             "planned_programs() returns their programs");
}

MemoryUse Context::memory() const {
    settle_calls(impl_->queue());
    return impl_->memory();
}

void Context::reset_memory_peaks() const {
    impl_->reset_memory_peaks();
}

std::uint64_t Context::release_cached() const {
    return impl_->trim();
}

void Context::finish() const {
    impl_->queue().finish();
}

}  // namespace dlprim
