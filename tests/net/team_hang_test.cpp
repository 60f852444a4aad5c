// SPDX-License-Identifier: MIT
// A device of a team that hangs in its driver leaves a thread behind, which keeps what it uses.
#include "net/support.hpp"
#include "net/two_layers.hpp"
#include "runtime/context_impl.hpp"
#include "support/held_queue.hpp"

#include <dlprim/team.hpp>

#include <chrono>
#include <memory>

using namespace dlprim;
using namespace dlprim::testing;

TEST_CASE("a device that hangs keeps what its thread uses", "[team_hang]") {
    ON_EVERY_DEVICE(device) {
        if (Access::impl(device).is_host()) return;
        const std::vector<Context> devices = contexts_like(device, 2);
        SolverOptions solver{.shards = 2};
        TeamOptions options{.deadline_seconds = 2};
        auto team = std::make_unique<Team>(
            devices,
            [](const Context& context, int) {
                return make_net(context, TwoLayers::json(4), training());
            },
            solver, options);
        const std::weak_ptr<NetCore> net = Access::shared_impl(team->net(1));
        const HeldQueue held(devices[1]);
        check_error(ErrorKind::device, {"rank 1", "2 seconds"}, [&] { team->share_state(); });
        const auto begin = std::chrono::steady_clock::now();
        team.reset();
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500));
        CHECK(!net.expired());
    }
}
