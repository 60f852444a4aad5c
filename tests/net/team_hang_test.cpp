// SPDX-License-Identifier: MIT
// A device of a team that hangs in its driver leaves a thread behind, which keeps what it uses.
#include "net/support.hpp"
#include "net/two_layers.hpp"
#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/team.hpp>

#include <chrono>
#include <memory>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Holds back all further work of a context's queue until it is opened.
class Gate {
  public:
    explicit Gate(const Context& context) {
        const ContextImpl& impl = Access::impl(context);
        cl_int code = CL_SUCCESS;
        event_ = clCreateUserEvent(static_cast<cl_context>(impl.cl_context_handle()), &code);
        REQUIRE(code == CL_SUCCESS);
        REQUIRE(clEnqueueBarrierWithWaitList(static_cast<cl_command_queue>(impl.cl_queue_handle()),
                                             1, &event_, nullptr) == CL_SUCCESS);
    }
    ~Gate() {
        clSetUserEventStatus(event_, CL_COMPLETE);
        clReleaseEvent(event_);
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

  private:
    cl_event event_ = nullptr;
};

}  // namespace

TEST_CASE("a device that hangs keeps what its thread uses", "[team]") {
    ON_EVERY_DEVICE(device) {
        if (Access::impl(device).is_host()) return;
        const std::vector<Context> devices = contexts_like(device, 2);
        SolverOptions solver;
        solver.shards = 2;
        TeamOptions options;
        options.deadline_seconds = 2;
        auto team = std::make_unique<Team>(
            devices,
            [](const Context& context, int) {
                return make_net(context, TwoLayers::json(4), training());
            },
            solver, options);
        const std::weak_ptr<NetImpl> net = Access::shared_impl(team->net(1));
        const Gate gate(devices[1]);
        check_error(ErrorKind::device, {"rank 1", "2 seconds"}, [&] { team->share_state(); });
        const auto begin = std::chrono::steady_clock::now();
        team.reset();
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500));
        CHECK(!net.expired());
    }
}
