// SPDX-License-Identifier: MIT
// Requests that share a batch.
#include "serve/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::tools {

Scheduler::Scheduler(LanguageModel& model, std::int64_t requests, std::chrono::seconds most_time)
    : most_requests_(requests),
      most_time_(most_time),
      batch_(model.start_batch()),
      thread_([this] { work(); }) {}

Scheduler::~Scheduler() {
    close();
    thread_.join();
}

void Scheduler::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    work_.notify_all();
    for (const auto& job : jobs_) job->changed.notify_all();
}

bool Scheduler::closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
}

Scheduler::Load Scheduler::load() const {
    const std::lock_guard lock(mutex_);
    Load load = load_;
    for (const auto& job : come_) load.waiting += job->request->prompts.size();
    return load;
}

std::shared_ptr<Scheduler::Job> Scheduler::enter(std::shared_ptr<const ServeRequest> request) {
    std::unique_lock lock(mutex_);
    if (closed_ || std::ssize(jobs_) >= most_requests_) return nullptr;
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    jobs_.insert(job);
    come_.push_back(job);
    work_.notify_all();
    job->changed.wait(lock, [&] { return closed_ || job->begun || job->error; });
    if (!job->error) return job;
    jobs_.erase(job);
    std::rethrow_exception(job->error);
}

void Scheduler::leave(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex_);
    jobs_.erase(job);
    gone_.push_back(job);
    work_.notify_all();
}

std::optional<Scheduler::Event> Scheduler::next(Job& job, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    job.changed.wait_for(lock, patience,
                         [&] { return closed_ || !job.events.empty() || job.error; });
    if (closed_) return std::nullopt;
    if (!job.events.empty()) {
        Event event = std::move(job.events.front());
        job.events.pop_front();
        return event;
    }
    if (job.error) std::rethrow_exception(job.error);
    return std::nullopt;
}

void Scheduler::work() {
    while (true) {
        std::vector<std::shared_ptr<Job>> come, gone;
        {
            std::unique_lock lock(mutex_);
            load_ = {batch_.running(), batch_.waiting()};
            work_.wait(lock, [&] {
                return closed_ || !come_.empty() || !gone_.empty() || !texts_.empty();
            });
            if (closed_) return;
            come.swap(come_);
            gone.swap(gone_);
        }
        try {
            for (const auto& job : come) begin(job);
            for (const auto& job : gone) drop(*job);
            for (GenerationBatch::Part& part : batch_.step())
                tell(part.number, std::move(part.piece), part.ended);
            end_late_texts();
        } catch (...) {  // such as a lack of memory, in which no text can go on
            while (!texts_.empty()) {
                const std::shared_ptr<Job> job = texts_.begin()->second.job;
                drop(*job);
                fail(*job, std::current_exception());
            }
        }
    }
}

void Scheduler::begin(const std::shared_ptr<Job>& job) {
    try {
        for (std::size_t i = 0; i < job->request->prompts.size(); ++i)
            texts_.emplace(batch_.add(job->request->prompts[i], job->request->options),
                           Text{job, i});
    } catch (...) {
        drop(*job);
        return fail(*job, std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    job->begun = true;
    job->changed.notify_all();
}

void Scheduler::drop(const Job& job) {
    for (auto text = texts_.begin(); text != texts_.end();) {
        if (text->second.job.get() != &job) {
            ++text;
            continue;
        }
        const std::size_t number = text->first;
        text = texts_.erase(text);
        try {
            batch_.take(number);
        } catch (const std::exception&) {  // the text had failed, which nobody is told any more
        }
    }
}

void Scheduler::fail(Job& job, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    job.error = std::move(error);
    job.changed.notify_all();
}

void Scheduler::tell(std::size_t number, std::optional<GeneratedPiece> piece, bool ended) {
    const auto found = texts_.find(number);
    if (found == texts_.end()) return;  // its request failed by another text
    const Text text = found->second;
    Event event{text.index, std::move(piece), {}};
    if (!text.job->end) text.job->end = Clock::now() + most_time_;
    if (ended) {
        texts_.erase(found);
        try {
            event.result = batch_.take(number);
        } catch (...) {
            drop(*text.job);
            return fail(*text.job, std::current_exception());
        }
    }
    const std::lock_guard lock(mutex_);
    text.job->events.push_back(std::move(event));
    text.job->changed.notify_all();
}

void Scheduler::end_late_texts() {
    const Clock::time_point now = Clock::now();
    std::vector<std::size_t> late;
    for (const auto& [number, text] : texts_)
        if (text.job->end && *text.job->end < now) late.push_back(number);
    for (const std::size_t number : late) tell(number, std::nullopt, true);
}

}  // namespace dlprim::tools
