// SPDX-License-Identifier: MIT
// OpenCLRefusals.
#include "runtime/opencl_refusals.hpp"

#include "base/text.hpp"
#include "runtime/opencl_program.hpp"

#include <algorithm>

namespace dlprim {

namespace {

constexpr std::size_t note_bytes = 32;

class Notes : public Buffer {
  public:
    explicit Notes(cl_mem memory) : Buffer(note_bytes, nullptr, memory) {}
    ~Notes() override {
        if (!opencl_gone()) clReleaseMemObject(static_cast<cl_mem>(handle()));
    }
};

cl_mem handle_of(const Buffer& buffer) {
    return static_cast<cl_mem>(buffer.handle());
}

}  // namespace

OpenCLRefusals::~OpenCLRefusals() = default;

const Buffer& OpenCLRefusals::memory() {
    const std::lock_guard lock(mutex_);
    if (!memory_) {
        std::int64_t zeros[note_bytes / sizeof(std::int64_t)] = {};
        cl_int code = CL_SUCCESS;
        const cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                           note_bytes, zeros, &code);
        cl_check(code, "making memory for notes of indices that are out of range");
        memory_ = std::make_unique<Notes>(made);
    }
    return *memory_;
}

int OpenCLRefusals::number_of(const std::string& who) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(names_.begin(), names_.end(), who);
    if (found != names_.end()) return static_cast<int>(found - names_.begin()) + 1;
    names_.push_back(who);
    return static_cast<int>(names_.size());
}

void OpenCLRefusals::enqueue(cl_command_queue queue, Look& look) {
    static_assert(sizeof(Look::Note) == note_bytes);
    look.pending_ = false;
    if (!expected_.exchange(false)) return;
    look.round_ = round_;
    cl_check(clEnqueueReadBuffer(queue, handle_of(memory()), CL_FALSE, 0, note_bytes, &look.note_,
                                 0, nullptr, nullptr),
             "asking for indices that are out of range");
    look.pending_ = true;
}

void OpenCLRefusals::check(cl_command_queue queue, Look& look) {
    if (!look.pending_) return;
    look.pending_ = false;
    const Look::Note& note = look.note_;
    if (note.who == 0) return;
    const std::lock_guard lock(mutex_);
    if (look.round_ != round_) return;
    ++round_;
    const std::int64_t nothing = 0;
    cl_check(clEnqueueFillBuffer(queue, handle_of(*memory_), &nothing, sizeof(nothing), 0,
                                 note_bytes, 0, nullptr, nullptr),
             "clearing the note of an index that is out of range");
    throw RefusedIndex(cat(
        names_.at(static_cast<std::size_t>(note.who - 1)),
        note.kind == Look::Note::cumulative
            ? lengths_text(note.index, note.place, note.size)
            : outside_text(note.index, note.place, note.size, note.kind == Look::Note::from_end)));
}

}  // namespace dlprim
