// SPDX-License-Identifier: MIT
// Context: choice of a device by text, and the public face of ContextImpl.
#include <dlprim/context.hpp>

#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <cctype>

namespace dlprim {
namespace {

std::string lowered(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

// Best first: GPUs, then accelerators, then CPUs; among equals by their estimated peak.
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
    std::string list;
    for (const DeviceInfo& info : Context::devices())
        list += cat(list.empty() ? "" : ", ", info.id, " = ", info.name,
                    info.kind == DeviceKind::host ? " (the host)" : cat(" (", info.platform, ")"));
    const char* help = opencl_devices().empty()
                           ? "; no OpenCL platform is installed: on Debian or Ubuntu `apt install "
                             "pocl-opencl-icd` gives one, and device cpu (the host) works without"
                           : "";
    fail(ErrorKind::not_found, "there is no device '", wanted, "'", origin, "; there are: ", list,
         help);
}

bool is_number_pair(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
    return std::all_of(text.begin(), text.end(),
                       [](unsigned char c) { return std::isdigit(c) || c == ':'; });
}

std::shared_ptr<ContextImpl> open_default() {
    for (const OpenCLDevice* device : ranked()) {
        try {
            return make_opencl_context(*device);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::invalid_argument)
                throw;  // the environment, not the device
            log(LogLevel::warning, cat("device ", device->info.id, " (", device->info.name,
                                       ") does not open, the next is tried: ", error.what()));
        }
    }
    return make_host_context();
}

// Whether a part of a name, in lower case, means this device. The platform's version comes last:
// only there does PoCL say that it is PoCL.
bool names_device(const OpenCLDevice& device, const std::string& name, bool by_version) {
    const auto holds = [&](const std::string& text) {
        return lowered(text).find(name) != std::string::npos;
    };
    if (by_version) return holds(device.platform_version);
    return holds(device.info.name) || holds(device.info.platform);
}

// `origin`: where an unknown name came from, for the message.
std::shared_ptr<ContextImpl> open(std::string_view wanted, std::string_view origin) {
    if (wanted == "cpu" || wanted == "host") return make_host_context();
    const std::string name = lowered(wanted);
    const bool by_place = is_number_pair(wanted);
    for (const bool by_version : {false, true}) {
        for (const OpenCLDevice* device : ranked()) {
            const bool match = by_place           ? device->info.id == wanted
                               : name == "opencl" ? true
                               : name == "gpu"    ? device->info.kind == DeviceKind::gpu
                                                  : names_device(*device, name, by_version);
            if (match) return make_opencl_context(*device);
        }
    }
    not_found(wanted, origin);
}

}  // namespace

Context::Context(std::string_view device) {
    if (!device.empty()) {
        impl_ = ContextImpl::for_users(open(device, {}));
    } else if (const auto chosen = env("DLPRIM_DEVICE")) {
        impl_ = ContextImpl::for_users(open(*chosen, " (from DLPRIM_DEVICE)"));
    } else {
        impl_ = ContextImpl::for_users(open_default());
    }
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
    // What the attachment holds refers to the context that holds it: the last user's handle parts
    // the two. Nobody is left then who could ask for it again.
    ContextImpl* const opened = impl.get();
    return {opened, [owner = std::move(impl)](ContextImpl*) { owner->attachment_.reset(); }};
}

void Context::finish() const {
    impl_->queue().finish();
}

}  // namespace dlprim
