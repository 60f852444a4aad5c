// SPDX-License-Identifier: MIT
#include "distributed/work.hpp"

namespace dlprim_torch {

// The future knows no devices, since a device's one queue keeps the order that events would.
Work::Work(int rank, c10d::OpType operation, std::vector<at::Tensor> results)
    : c10d::Work(rank, operation),
      results_(std::move(results)),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()))) {}

void Work::run(const std::function<void()>& body) {
    std::exception_ptr failure;
    try {
        body();
    } catch (...) {
        failure = std::current_exception();
    }
    // Callbacks of the future may wait for this, which therefore is done before they run.
    finish(failure);
    if (failure)
        future_->setError(failure);
    else
        future_->markCompleted(c10::IValue(results_));
}

}  // namespace dlprim_torch
