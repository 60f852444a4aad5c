// SPDX-License-Identifier: MIT
// OpenCLRefusals: the notes of an OpenCL context's kernels, and the looks at them.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/refusals.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlprim {

/// All methods may be called by any thread.
class OpenCLRefusals : public Refusals {
  public:
    /// One look at the notes, into host memory that must stay where it is until the look is done.
    class Look {
      public:
        /// Whether a read was enqueued that writes to this object.
        bool pending() const noexcept { return pending_; }

      private:
        friend class OpenCLRefusals;
        /// As kernels write it; 0 in `who` says that nothing was refused.
        struct Note {
            enum Kind : std::int32_t { plain, from_end, cumulative };  ///< engine/refuse.clh
            std::int32_t who;
            Kind kind;
            std::int64_t index, place, size;
        };
        Note note_{};
        std::uint64_t round_ = 0;
        bool pending_ = false;
    };

    explicit OpenCLRefusals(cl_context context) : context_(context) {}
    ~OpenCLRefusals() override;
    OpenCLRefusals(const OpenCLRefusals&) = delete;
    OpenCLRefusals& operator=(const OpenCLRefusals&) = delete;

    const Buffer& memory() override;
    int number_of(const std::string& who) override;
    void expect() noexcept override { expected_ = true; }

    /// Enqueues a read of the notes if kernels that may refuse were enqueued since the last look.
    /// Does not wait.
    void enqueue(cl_command_queue queue, Look& look);
    /// After that read is done: throws Error(invalid_argument) if a kernel refused something, and
    /// clears the notes for the next one.
    void check(cl_command_queue queue, Look& look);

  private:
    cl_context context_;
    std::mutex mutex_;
    std::unique_ptr<Buffer> memory_;  ///< made on first use
    std::vector<std::string> names_;  ///< by number - 1
    std::atomic<bool> expected_{false};
    /// How often the notes were cleared: a look from before that sees what was reported already.
    std::atomic<std::uint64_t> round_{0};
};

}  // namespace dlprim
