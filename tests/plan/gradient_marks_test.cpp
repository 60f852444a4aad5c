// SPDX-License-Identifier: MIT
// Where gradients are complete: what lies in the block of gradients after the step that a mark
// names is what lies there at the end of the backward part.
#include "api/net_impl.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

TEST_CASE("gradients are complete after the steps that plans mark", "[plan]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training(4));
        const Solver solver(net, {});
        NetImpl& impl = Access::impl(net);
        Executor& executor = *impl.built().executor;
        const std::vector<GradientMark>& marks = executor.plan().gradient_marks;
        Tensor gradients = executor.tensor(executor.plan().graph.find("@gradients"));
        REQUIRE(marks.size() > 2);
        CHECK(marks.front().begin == 0);
        CHECK(marks.back().end == gradients.bytes());
        for (std::size_t i = 0; i + 1 < marks.size(); ++i)
            CHECK(marks[i].end == marks[i + 1].begin);
        // The last operator's gradient is there long before the first one's.
        CHECK(marks.back().last_step < marks.front().last_step);

        const auto range = [&](const GradientMark& mark) {
            const Bytes all = bits(gradients);
            return Bytes(all.begin() + static_cast<std::ptrdiff_t>(mark.begin),
                         all.begin() + static_cast<std::ptrdiff_t>(mark.end));
        };
        feed_small_network(net, 1);
        impl.forward();
        std::size_t calls = 0;
        impl.backward([&](std::size_t) { ++calls; });
        CHECK(calls == 0);  // the part is not proven
        gradients.fill(std::numeric_limits<double>::quiet_NaN());
        std::vector<Bytes> at_marks(marks.size());
        impl.forward();
        impl.backward([&](std::size_t step) {
            ++calls;
            for (std::size_t i = 0; i < marks.size(); ++i)
                if (marks[i].last_step == step) at_marks[i] = range(marks[i]);
        });
        CHECK(calls > marks.size() / 2);
        for (std::size_t i = 0; i < marks.size(); ++i) CHECK((at_marks[i] == range(marks[i])));
    }
}
