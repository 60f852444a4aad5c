// SPDX-License-Identifier: MIT
// Processes.
#include <dlprim/processes.hpp>

#include "base/text.hpp"
#include "collective/processes/process_group.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

static_assert(lost_code == restart_code);

RunFailure public_failure(const Failure& failure) {
    return {failure.rank, failure.step, failure.code, failure.text};
}

}  // namespace

int exit_code_of(const Error& error) {
    const ErrorKind kind = error.kind();
    return kind == ErrorKind::device || kind == ErrorKind::out_of_memory || kind == ErrorKind::io
               ? restart_code
               : 1;
}

Processes Processes::join(double deadline_seconds) {
    Processes processes;
    if (const std::optional<RankPlace> place = place_from_environment())
        processes.impl_ =
            std::make_shared<ProcessGroup>(*place, std::chrono::duration<double>(deadline_seconds));
    return processes;
}

int Processes::rank() const {
    return impl_ ? impl_->place().rank : 0;
}
int Processes::size() const {
    return impl_ ? impl_->place().size : 1;
}
int Processes::local_rank() const {
    return impl_ ? impl_->place().local_rank : 0;
}
int Processes::local_size() const {
    return impl_ ? impl_->place().local_size : 1;
}

std::string Processes::text() const {
    if (!impl_) return {};
    return cat(impl_->size(), " processes by ", impl_->transport(), ", started by ",
               impl_->place().starter);
}

RunFailure Processes::failed(const std::string& message, int exit_code) {
    if (!impl_) return {0, 0, 1, message};
    return public_failure(impl_->failed(exit_code, message));
}

void Processes::on_lost(std::function<void(const RunFailure&)> call) {
    if (!impl_) return;
    impl_->on_lost(
        [call = std::move(call)](const Failure& failure) { call(public_failure(failure)); });
}

void Processes::leave() {
    if (impl_) impl_->leave();
}

}  // namespace dlprim
