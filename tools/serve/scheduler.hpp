// SPDX-License-Identifier: MIT
// Scheduler: one thread that makes the texts of all requests, in one batch. A request joins at the
// next step, whatever others have made so far, and one whose place is given up leaves at the next.
#pragma once

#include "serve/request.hpp"

#include <dlprim/language.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace dlprim::tools {

class Scheduler {
    struct Job;

  public:
    /// At most `requests` wait or run at a time. An answer ends `most_time` after its first token.
    /// Nobody else makes texts by the model, which must outlive the scheduler.
    Scheduler(LanguageModel& model, std::int64_t requests, std::chrono::seconds most_time);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Of a text of a request: what was made, and all of it when it has ended.
    struct Event {
        std::size_t index = 0;  ///< of the prompt
        std::optional<GeneratedPiece> piece;
        std::optional<GenerateResult> result;
    };

    /// The place of a request, whose texts end with it. One that is refused, because there are too
    /// many or the scheduler is closed, is no place. It is used by one thread at a time.
    class Place {
      public:
        /// Waits until the running step has ended. Throws as GenerationBatch::add().
        Place(Scheduler& scheduler, std::shared_ptr<const ServeRequest> request)
            : scheduler_(scheduler), job_(scheduler.enter(std::move(request))) {}
        ~Place() {
            if (job_) scheduler_.leave(job_);
        }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

        explicit operator bool() const { return job_ != nullptr; }
        /// Waits for the next event, so long at most and while the scheduler is open. Throws what
        /// the request failed by.
        std::optional<Event> next(std::chrono::milliseconds patience) {
            return scheduler_.next(*job_, patience);
        }

      private:
        Scheduler& scheduler_;
        const std::shared_ptr<Job> job_;
    };

    /// No text goes on from now on, and nobody waits.
    void close();
    bool closed() const;

    struct Load {
        std::size_t running = 0, waiting = 0;  ///< texts
    };
    Load load() const;

  private:
    using Clock = std::chrono::steady_clock;

    /// A request.
    struct Job {
        std::deque<Event> events;
        std::exception_ptr error;
        bool begun = false;  ///< whether its texts are in the batch
        std::shared_ptr<const ServeRequest> request;
        std::condition_variable changed;
        std::optional<Clock::time_point> end;  ///< the thread's; once its first token is known
    };
    struct Text {
        std::shared_ptr<Job> job;
        std::size_t index;  ///< of the prompt
    };

    std::shared_ptr<Job> enter(std::shared_ptr<const ServeRequest> request);
    void leave(const std::shared_ptr<Job>& job);
    std::optional<Event> next(Job& job, std::chrono::milliseconds patience);

    // On the thread.
    void work();
    void begin(const std::shared_ptr<Job>& job);
    /// Ends all texts of the job, which then is told nothing more.
    void drop(const Job& job);
    void fail(Job& job, std::exception_ptr error);
    void tell(std::size_t number, std::optional<GeneratedPiece> piece, bool ended);
    void end_late_texts();

    const std::int64_t most_requests_;
    const std::chrono::seconds most_time_;
    mutable std::mutex mutex_;  ///< of all that is not the thread's alone
    std::condition_variable work_;
    std::vector<std::shared_ptr<Job>> come_, gone_;
    std::set<std::shared_ptr<Job>> jobs_;  ///< all that have a place
    bool closed_ = false;
    Load load_;
    GenerationBatch batch_;              ///< the thread's
    std::map<std::size_t, Text> texts_;  ///< the thread's, by their numbers in the batch
    std::thread thread_;
};

}  // namespace dlprim::tools
