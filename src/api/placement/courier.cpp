// SPDX-License-Identifier: MIT
// Courier.
#include "api/placement/courier.hpp"

#include "collective/devices/second_queue.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/copy_between.hpp"

#include <utility>

namespace dlprim {

/// What a move that hangs keeps.
struct Courier::Ways {
    Context source, target;
    CopyStage stage;

    void move(const Tensor& from, const Tensor& to) {
        const Tensor read = elements_of(source, from, 0, from.shape().numel());
        const Tensor written = elements_of(target, to, 0, to.shape().numel());
        stage.copy(Access::impl(source), {Access::buffer(read).get(), read.byte_offset()},
                   Access::impl(target), {Access::buffer(written).get(), written.byte_offset()},
                   from.bytes());
    }
};

Courier::Courier(const Context& from, const Context& to, std::chrono::duration<double> patience)
    : ways_(std::make_shared<Ways>(Ways{beside(from), beside(to), {}})), mover_(patience) {}

void Courier::post(const Tensor& source, const Tensor& target, std::shared_ptr<EventImpl> ready,
                   std::shared_ptr<EventImpl> unused, TracedMove traced,
                   std::function<void(std::exception_ptr)> done) {
    mover_.post([ways = ways_, source, target, ready = std::move(ready), unused = std::move(unused),
                 traced = std::move(traced), done = std::move(done)] {
        std::exception_ptr thrown;
        try {
            TracePhases phases(traced.recorder.get(), traced.rank, TraceRow::exchange);
            phases.next(TraceKind::wait, "wait for the value");
            ready->wait();
            if (unused) unused->wait();
            phases.next(TraceKind::move, traced.name.c_str());
            ways->move(source, target);
        } catch (...) {
            thrown = std::current_exception();
        }
        done(thrown);
    });
}

}  // namespace dlprim
