// SPDX-License-Identifier: MIT
// Memory that several devices reach is ruled in by a probe, which notices memory that is not the
// same on all of them, and does not wait for ever.
#include "collective/devices/peer_memory.hpp"

#include "collective/shared_devices.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Seconds = std::chrono::duration<double>;

std::string probe(const std::shared_ptr<FakePeers>& source, Seconds patience = Seconds(60)) {
    return trouble_of(source, source->contexts, add_tensors, patience);
}

std::shared_ptr<FakePeers> two_hosts() {
    return std::make_shared<FakePeers>(std::vector<Context>{Context("cpu"), Context("cpu")});
}

}  // namespace

TEST_CASE("memory that devices share passes the probe", "[peer]") {
    ON_EVERY_DEVICE(device) {
        if (device.info().kind == DeviceKind::gpu) return;
        const auto source = std::make_shared<FakePeers>(contexts_like(device, 3));
        CHECK(probe(source).empty());
        CHECK(source->made == 3);
    }
}

TEST_CASE("contexts that have reached memory of each other end", "[peer]") {
    // NVIDIA's driver does not end a context that still has what it has acquired.
    ON_EVERY_DEVICE(device) {
        std::vector<Context> contexts = contexts_like(device, 2);
        const std::weak_ptr<ContextImpl> first = Access::shared_impl(contexts[0]);
        const auto choose = [&]() -> std::shared_ptr<PeerSource> {
            if (device.info().kind != DeviceKind::gpu) return std::make_shared<FakePeers>(contexts);
            try {
                return cuda_peers(contexts);
            } catch (const Error& error) {
                WARN("no memory of peers: " << error.what());
                return nullptr;
            }
        };
        if (std::shared_ptr<PeerSource> source = choose())
            CHECK(trouble_of(source, contexts, add_tensors, Seconds(60)).empty());
        contexts.clear();
        CHECK(first.expired());
    }
}

TEST_CASE("memory that is not the same everywhere is refused", "[peer]") {
    const auto source = two_hosts();
    std::vector<std::vector<std::byte>> other;
    const std::size_t page = 4096;
    SECTION("each has its own") {
        source->reroute = [&](std::size_t owner, std::size_t context, std::byte* memory,
                              std::uint64_t bytes) {
            if (owner == context) return memory;
            other.emplace_back(bytes);
            return other.back().data();
        };
    }
    SECTION("only memory of the second device does not arrive") {
        source->reroute = [&](std::size_t owner, std::size_t context, std::byte* memory,
                              std::uint64_t bytes) {
            if (owner == context || owner == 0) return memory;
            other.emplace_back(bytes);
            return other.back().data();
        };
    }
    std::vector<std::pair<void*, std::uint64_t>> mappings;
    SECTION("all but the last page is shared") {
        source->reroute = [&](std::size_t owner, std::size_t context, std::byte* memory,
                              std::uint64_t bytes) {
            if (owner == context) return memory;
            // The same memory again, with another last page.
            void* const again = mremap(memory, 0, bytes, MREMAP_MAYMOVE);
            REQUIRE(again != MAP_FAILED);
            std::byte* const last = static_cast<std::byte*>(again) + bytes - page;
            REQUIRE(mmap(last, page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == last);
            mappings.emplace_back(again, bytes);
            return static_cast<std::byte*>(again);
        };
    }
    const std::string found = probe(source);
    INFO("the message: " << found);
    CHECK(found.find("did not arrive") != std::string::npos);
    for (const auto& [memory, bytes] : mappings) munmap(memory, bytes);
}

TEST_CASE("kernels that see what was there before are refused", "[peer]") {
    // As with a cache that keeps the other device's values: right the first time, then stale.
    const auto source = two_hosts();
    std::map<const ContextImpl*, std::vector<float>> seen;
    const auto stale = [&](const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                           double factor) {
        const Tensor& out = outs.at(0);
        const bool reads = Access::buffer(left) == Access::buffer(out);
        add_tensors(left, right, outs, factor);
        if (!reads) return;
        std::vector<float>& values = seen[&Access::impl(out.context())];
        if (values.empty()) values = out.to_floats();
        Tensor target = out;
        target.copy_from(values);
    };
    const std::string found = trouble_of(source, source->contexts, stale, Seconds(60));
    INFO("the message: " << found);
    CHECK(found.find("did not arrive at cpu") != std::string::npos);
    CHECK(!seen.empty());
}

TEST_CASE("errors and hangs of a source are reasons", "[peer]") {
    const auto source = two_hosts();
    source->before_make = [] { throw Error(ErrorKind::out_of_memory, "no memory of a test"); };
    CHECK(probe(source).find("no memory of a test") != std::string::npos);
    std::promise<void> judged;
    source->before_make = [end = judged.get_future().share()] { end.wait(); };
    const std::string found = probe(source, Seconds(0.2));
    CHECK(found == "a probe of it has not ended after 0.2 seconds");
    judged.set_value();
    // The thread that was left behind has the source until it ends.
    while (source.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_CASE("what cannot import memory is told why", "[peer]") {
    const Context host("cpu"), other("cpu");
    check_error(ErrorKind::unsupported, {"cpu", "is the host"}, [&] { cuda_peers({host, other}); });
    CHECK_NOTHROW(host_peers({host, other}));
    for (const Context& device : test_devices()) {
        if (device.info().kind != DeviceKind::cpu) continue;
        check_error(ErrorKind::unsupported, {device.info().id, "has no cl_khr_external_memory"},
                    [&] { cuda_peers({device}); });
        check_error(ErrorKind::unsupported, {device.info().id, "is not the host"}, [&] {
            host_peers({host, device});
        });
    }
}

TEST_CASE("a variable allows memory of peers", "[peer]") {
    const std::vector<Context> contexts{Context("cpu"), Context("cpu")};
    const auto choose = [&] { return choose_peers(contexts, add_tensors); };
    ::unsetenv("DLPRIM_PEER");
    for (const char* value : {"", "0"}) {
        const PeerChoice choice = choose();
        CHECK(choice.source == nullptr);
        CHECK(choice.reason.empty());
        ::setenv("DLPRIM_PEER", value, 1);
    }
    CHECK(choose().source == nullptr);
    ::setenv("DLPRIM_PEER", "yes", 1);
    check_error(ErrorKind::invalid_argument, {"DLPRIM_PEER", "'yes'"}, choose);
    ::setenv("DLPRIM_PEER", "1", 1);
    CHECK(choose().source != nullptr);
    ::unsetenv("DLPRIM_PEER");
}
