// SPDX-License-Identifier: MIT
// PeerMemory: its sources, and the choice among them.
#include "collective/devices/peer_memory.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/devices/cuda_driver.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/external_memory.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace dlprim {

const std::shared_ptr<Buffer>& PeerMemory::in(std::size_t context) {
    std::shared_ptr<Buffer>& buffer = buffers_.at(context);
    if (!buffer) buffer = open_(context);
    return buffer;
}

namespace {

/// How long a probe may take. Two devices compile a kernel for it.
constexpr std::chrono::duration<double> probe_patience{60};

class HostPeers : public PeerSource {
  public:
    explicit HostPeers(const std::vector<Context>& contexts) : contexts_(contexts) {}
    std::string name() const override { return "memory that the devices share"; }
    std::shared_ptr<PeerMemory> make(std::size_t, std::uint64_t bytes) override {
        constexpr std::align_val_t page{4096};
        const std::uint64_t size = std::max<std::uint64_t>(bytes, 1);
        const std::shared_ptr<void> memory(::operator new(size, page, std::nothrow),
                                           [](void* at) { ::operator delete(at, page); });
        if (!memory)
            fail(ErrorKind::out_of_memory, "host memory of ", bytes,
                 " bytes for sums is not there");
        return std::make_shared<PeerMemory>(
            contexts_.size(), [contexts = contexts_, memory, size](std::size_t context) {
                return Access::impl(contexts[context]).wrap(memory.get(), size);
            });
    }

  private:
    std::vector<Context> contexts_;
};

class CudaPeers : public PeerSource {
  public:
    CudaPeers(const std::vector<Context>& contexts, std::shared_ptr<const CudaDriver> driver,
              std::vector<int> devices, ImportDescriptor import)
        : contexts_(contexts),
          driver_(std::move(driver)),
          devices_(std::move(devices)),
          import_(std::move(import)) {}
    std::string name() const override { return "memory of GPUs that reach each other"; }
    /// NVIDIA's OpenCL driver 580 imports 102 MB, and crashes where it is given 553 MB. Nothing
    /// between was tried.
    std::uint64_t largest() const override { return std::uint64_t{100} << 20; }
    std::shared_ptr<PeerMemory> make(std::size_t owner, std::uint64_t bytes) override {
        const auto memory = std::make_shared<CudaDriver::Memory>(driver_, devices_.at(owner),
                                                                 std::max<std::uint64_t>(bytes, 1));
        return std::make_shared<PeerMemory>(
            contexts_.size(),
            [contexts = contexts_, import = import_, memory](std::size_t context) {
                // The threads of all ranks import, and the driver is asked for one thing at a time.
                static std::mutex mutex;
                const std::lock_guard lock(mutex);
                return import(Access::impl(contexts[context]), memory->export_descriptor(),
                              memory->bytes());
            });
    }

  private:
    std::vector<Context> contexts_;
    std::shared_ptr<const CudaDriver> driver_;
    std::vector<int> devices_;
    ImportDescriptor import_;
};

}  // namespace

std::shared_ptr<PeerSource> host_peers(const std::vector<Context>& contexts) {
    for (const Context& context : contexts)
        if (!Access::impl(context).is_host())
            fail(ErrorKind::unsupported, context.info().str(), " is not the host");
    return std::make_shared<HostPeers>(contexts);
}

std::shared_ptr<PeerSource> cuda_peers(const std::vector<Context>& contexts,
                                       std::shared_ptr<const CudaDriver> driver,
                                       const std::vector<int>& devices, ImportDescriptor import) {
    for (std::size_t i = 0; i < contexts.size(); ++i)
        for (std::size_t j = 0; j < contexts.size(); ++j)
            if (!driver->reaches(devices[i], devices[j]))
                fail(ErrorKind::unsupported, contexts[i].info().str(),
                     " does not reach the memory of ", contexts[j].info().str());
    return std::make_shared<CudaPeers>(contexts, std::move(driver), devices, std::move(import));
}

std::shared_ptr<PeerSource> cuda_peers(const std::vector<Context>& contexts) {
    for (const Context& context : contexts)
        if (const std::string trouble = import_trouble(Access::impl(context)); !trouble.empty())
            fail(ErrorKind::unsupported, context.info().str(), " ", trouble);
    const auto driver = std::make_shared<const CudaDriver>();
    std::vector<int> devices;
    for (const Context& context : contexts) {
        const std::optional<DeviceUuid> uuid = uuid_of(Access::impl(context));
        if (!uuid) fail(ErrorKind::unsupported, context.info().str(), " has no cl_khr_device_uuid");
        devices.push_back(driver->device_of(*uuid));
    }
    return cuda_peers(contexts, driver, devices, import_descriptor);
}

bool peers_are_allowed() {
    return env_flag("DLPRIM_PEER").value_or(false);
}

PeerChoice choose_peers(const std::vector<Context>& contexts, const AddPair& add) {
    if (!peers_are_allowed()) return {};
    PeerChoice choice;
    if (const auto text = env("DLPRIM_PEER_MIB")) {
        const auto mib = leading_number<std::uint64_t>(*text, 0);
        require(mib > 0 && mib < 1 << 20, "DLPRIM_PEER_MIB is '", *text,
                "'; it is a number of MiB, at least 1");
        choice.most = mib << 20;
    }
    const bool host = std::all_of(contexts.begin(), contexts.end(), [](const Context& context) {
        return Access::impl(context).is_host();
    });
    try {
        const std::shared_ptr<PeerSource> source =
            host ? host_peers(contexts) : cuda_peers(contexts);
        choice.reason = trouble_of(source, contexts, add, probe_patience);
        if (choice.reason.empty()) choice.source = source;
    } catch (const Error& error) {
        choice.reason = error.what();
    }
    return choice;
}

}  // namespace dlprim
