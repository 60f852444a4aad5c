// SPDX-License-Identifier: MIT
// Eager calls that are put off while processes compile their programs (runtime/put_off_calls.hpp):
// their order, their results, their errors, and who waits for them. The entry net_eager_put_off
// runs the other tests of eager calls so, too.
#include "net/support.hpp"
#include "runtime/access.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/put_off_calls.hpp"

#include <dlprim/call_names.hpp>
#include <dlprim/compile_wait.hpp>
#include <dlprim/log.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

PutOffCalls* calls_of(const Context& context) {
    return put_off_calls(Access::impl(context).queue());
}

/// Convolution, norm, fills, copies, views and updates in place, each reading what the one before
/// wrote.
Tensor some_calls(const Context& device) {
    const Tensor x(device, Shape{2, 3, 8, 8}, random_floats(384, 1));
    const Tensor w(device, Shape{16, 3, 3, 3}, random_floats(432, 2));
    Tensor y = ops::call("Convolution2D",
                         R"({"channels_out": 16, "kernel": 3, "pad": 1, "bias": 0})", {x}, {w})[0];
    Tensor ones(device, y.shape());
    ones.fill(1);
    y = ops::call("Pointwise", R"({"code": "y0 = x0 * 0.5 + x1"})", {y, ones})[0];
    Tensor copy(device, y.shape());
    ops::copy(y, copy);
    ops::CallOptions in_place{.out = {copy}};
    ops::call("Pointwise", R"({"code": "y0 = x0 * x0 - x1"})", {copy, y}, {}, in_place);
    ones.fill(3);
    const Tensor turned = copy.permute({0, 2, 3, 1}).to_contiguous();
    return ops::call("Pointwise", R"({"code": "y0 = x0 + x1"})",
                     {turned, ones.permute({0, 2, 3, 1}).to_contiguous()})[0];
}

}  // namespace

TEST_CASE("calls are put off while their programs are compiled, and results are the same",
          "[put_off]") {
    ON_EVERY_DEVICE(device) {
        const CacheFolder folder;
        std::vector<float> expected;
        {
            const Variable none("DLPRIM_COMPILE_PROCESSES", "0");
            const Context at_once(device.info().id);
            CHECK(calls_of(at_once) == nullptr);
            expected = some_calls(at_once).to_floats();
        }
        const CacheFolder empty;
        const Context fresh(device.info().id);
        const Tensor y = some_calls(fresh);
        PutOffCalls* const calls = calls_of(fresh);
        if (calls != nullptr) CHECK(calls->any());
        CHECK(y.to_floats() == expected);
        if (calls != nullptr) CHECK_FALSE(calls->any());
        // Now everything is compiled.
        const Tensor again = some_calls(fresh);
        if (calls != nullptr) CHECK_FALSE(calls->any());
        CHECK(again.to_floats() == expected);
    }
}

TEST_CASE("an error of a call that was put off names it, and reaches whoever waits", "[put_off]") {
    ON_EVERY_DEVICE(device) {
        const Context fresh(device.info().id);
        PutOffCalls* const calls = calls_of(fresh);
        if (calls == nullptr) continue;
        calls->push("Sum", {}, [] { fail(ErrorKind::device, "it broke"); });
        calls->push("Product", {}, [] { fail(ErrorKind::device, "it broke, too"); });
        CHECK_THROWS_WITH(fresh.finish(), "[Sum] it broke");
        fresh.finish();  // the second one follows from the first
        set_call_names([] { return std::string("aten::sum"); });
        calls->push("Sum", {}, [] {
            log(LogLevel::warning, "it is slow");
            fail(ErrorKind::device, "it broke");
        });
        set_call_names({});
        std::string line;
        set_log([&](LogLevel level, std::string_view text) {
            if (level == LogLevel::warning) line = text;
        });
        CHECK_THROWS_WITH(fresh.finish(), "aten::sum: [Sum] it broke");
        set_log({});
        CHECK(line == "aten::sum: it is slow");
    }
}

TEST_CASE("the end of a context waits for calls that are put off", "[put_off]") {
    ON_EVERY_DEVICE(device) {
        const CacheFolder empty;
        std::weak_ptr<Buffer> memory;
        {
            const Context fresh(device.info().id);
            memory = Access::buffer(some_calls(fresh));
        }
        CHECK(memory.expired());
    }
}

TEST_CASE("a receiver that throws ends the wait for calls, not the calls", "[put_off]") {
    ON_EVERY_DEVICE(device) {
        const CacheFolder empty;
        const Context fresh(device.info().id);
        if (calls_of(fresh) == nullptr) continue;
        const Tensor y = some_calls(fresh);
        set_compile_wait([](const CompileWait&) { throw std::runtime_error("no more waiting"); });
        CHECK_THROWS_WITH(y.to_floats(), "no more waiting");
        set_compile_wait({});
        CHECK(y.to_floats() == some_calls(fresh).to_floats());
    }
}
