// SPDX-License-Identifier: MIT
// Where gradients are complete: what lies in the block of gradients after the step that a mark
// names is what lies there at the end of the backward part.
#include "plan/gradient_marks.hpp"
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

TEST_CASE("a step that writes more than one gradient is an error", "[plan]") {
    const auto plan_that_writes = [](std::uint64_t offset, std::uint64_t bytes) {
        Plan plan;
        for (const char* name : {"first", "second"}) {
            Value value;
            value.name = name;
            value.spec = {Shape{10}, DType::f32};
            value.role = Role::parameter;
            value.trainable = true;
            plan.graph.add_value(std::move(value));
        }
        plan.blocks = {{"params", 512}, {"gradients", 512}};
        Step step;
        step.name = "both";
        step.part = Part::backward;
        step.written = {{Place{Place::Kind::block, 1, offset}, bytes}};
        plan.steps.push_back(std::move(step));
        return plan;
    };
    const std::vector<GradientMark> marks = find_gradient_marks(plan_that_writes(256, 40));
    REQUIRE(marks.size() == 2);
    CHECK(marks[0].end == 256);
    check_error(ErrorKind::unsupported, {"'both'", "byte 296", "at 256"},
                [&] { find_gradient_marks(plan_that_writes(0, 296)); });
}
