// SPDX-License-Identifier: MIT
// Executor: how long each step of a plan takes. Values that last are as they were afterwards.
#include "exec/executor.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

std::vector<Executor::Timing> Executor::profile(bool whole_step, const Progress& progress) {
    const std::vector<Saved> saved = save_lasting(whole_step);
    std::vector<Timing> timings(plan_->steps.size());
    try {
        run_profiled(Part::forward, timings, progress);
        if (whole_step)
            for (const Part part : {Part::backward, Part::accumulate, Part::update})
                run_profiled(part, timings, progress);
    } catch (...) {
        write_back(saved);
        throw;
    }
    write_back(saved);
    const int steps = static_cast<int>(plan_->steps.size());
    if (progress) progress("", steps, steps);
    return timings;
}

std::vector<Executor::Saved> Executor::save_lasting(bool whole_step) const {
    std::vector<Saved> saved;
    const auto save = [&](const BufferRef& place, std::uint64_t bytes) {
        if (bytes == 0) return;
        std::vector<std::byte> held(bytes);
        Access::impl(context_).queue().read(place, held.data(), bytes, true);
        saved.push_back({place, std::move(held)});
    };
    // A forward run without assignments, as in inference, writes to no other executor's block.
    if (whole_step || !plan_->graph.assignments.empty())
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            if (!plan_->blocks[i].is_constants())
                save({blocks_[i].get(), 0}, plan_->blocks[i].bytes);
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        const External& external = plan_->externals[i];
        if (external.kind != External::Kind::gradient) continue;
        const TensorSpec& spec = plan_->graph.spec(external.value);
        save({bound_[i].buffer.get(), bound_[i].byte_offset},
             storage_bytes(spec.shape, spec.dtype, external.layout));
    }
    return saved;
}

void Executor::write_back(const std::vector<Saved>& saved) {
    for (const auto& [place, bytes] : saved)
        Access::impl(context_).queue().write(place, bytes.data(), bytes.size(), true);
    scalars_dirty_ = true;  // scalars that were set in the meantime are only in the host copy
}

void Executor::enqueue_labelled(Part part, const Progress& progress) {
    const int steps = static_cast<int>(plan_->steps.size());
    for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
        if (plan_->steps[i].part != part) continue;
        running_ = nullptr;
        if (progress) progress("profiling " + plan_->steps[i].name, static_cast<int>(i), steps);
        Access::impl(context_).queue().set_label(static_cast<int>(i));
        running_ = &plan_->steps[i];
        enqueue(plan_->steps[i], step_bound_[i]);
    }
    running_ = nullptr;
}

void Executor::run_profiled(Part part, std::vector<Timing>& timings, const Progress& progress) {
    struct Profiling {
        Queue& queue;
        ~Profiling() {
            queue.set_label(-1);
            try {
                queue.take_profile();  // discard the profile of a failed run
                queue.set_profiling(false);
            } catch (const Error&) {
                // The caller gets the earlier error, which is the cause.
            }
        }
    };
    Queue& queue = Access::impl(context_).queue();
    const Profiling ends{queue};
    running_ = nullptr;
    try {
        prepare_run();
        running_ = nullptr;
        // Launches that were part of chains have not run separately yet, and drivers may compile at
        // the first launch. So run all steps once before measuring. Chains are used only in
        // inference, which may run twice.
        if (!chains_.empty()) enqueue_labelled(part, progress);
        queue.finish();
        queue.set_profiling(true);
        enqueue_labelled(part, progress);
    } catch (const Error& error) {
        if (running_ != nullptr && !running_->disable_key().empty())
            launch_failed(*running_, part, error);
        throw;
    }
    for (const ProfileRecord& record : queue.take_profile()) {
        if (record.label < 0) continue;
        Timing& timing = timings.at(static_cast<std::size_t>(record.label));
        if (timing.busy_ns == 0) timing.start_ns = record.start_ns;
        timing.end_ns = std::max(timing.end_ns, record.end_ns);
        timing.busy_ns += record.end_ns - record.start_ns;
    }
}

}  // namespace dlprim
