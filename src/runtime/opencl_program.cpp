// SPDX-License-Identifier: MIT
// Programs and kernels on OpenCL: arguments by name, errors that name kernel and parameter.
#include "runtime/opencl_program.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/kernel_turns.hpp"
#include "runtime/program_memo.hpp"
#include "runtime/split_launch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dlprim {

thread_local int BuildsLater::depth_ = 0;

namespace {

/// What stands before the value of an argument that is stored.
struct StoredArgument {
    std::int32_t index;
    bool local;  ///< local memory, which has no value
    std::uint64_t bytes;
};

std::string range_text(const NDRange& range) {
    std::string global, local;
    for (int i = 0; i < range.dims; ++i) {
        global += cat(i > 0 ? "x" : "", range.global[static_cast<std::size_t>(i)]);
        local += cat(i > 0 ? "x" : "", range.local[static_cast<std::size_t>(i)]);
    }
    return cat("global ", global, ", local ", range.local[0] == 0 ? "free" : local);
}

}  // namespace

OpenCLKernel::~OpenCLKernel() {
    if (kernel_ == nullptr || opencl_gone()) return;
    if (recorded_) program_->thread()->settle();
    clReleaseKernel(kernel_);
}

void OpenCLKernel::compile() {
    if (kernel_ != nullptr) return;
    const std::string& source = program_->source().name;
    cl_int code = CL_SUCCESS;
    const cl_kernel made = clCreateKernel(program_->handle(), name_.c_str(), &code);
    cl_check(code, "program '", source, "': making kernel '", name_, "'");
    kernel_ = made;
    cl_uint count = 0;
    cl_check(clGetKernelInfo(kernel_, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr),
             "kernel '", name_, "': counting its parameters");
    const int named = parameters_->empty() ? 0 : parameters_->back().argument + 1;
    require(static_cast<int>(count) == named, "kernel '", name_, "' of '", source, "' takes ",
            count, " parameters, but its text names ", named, ": ", names_of(*parameters_));
    for (const Argument& argument : early_)
        set_argument(argument.index, argument.value.empty() ? nullptr : argument.value.data(),
                     argument.bytes);
    early_ = {};
}

int OpenCLKernel::index_of(std::string_view parameter) const {
    return parameter_index(*parameters_, name_, parameter);
}

void OpenCLKernel::set(int index, const Buffer& buffer) {
    const cl_mem memory = static_cast<cl_mem>(buffer.handle());
    set(index, &memory, sizeof(memory));  // NOLINT(bugprone-sizeof-expression)
}

void OpenCLKernel::set(int index, const void* value, std::size_t bytes) {
    const auto parameter = static_cast<std::size_t>(index);
    require(parameter < parameters_->size(), "kernel '", name_, "' has no parameter number ",
            index);
    if ((*parameters_)[parameter].in.empty())
        set_argument((*parameters_)[parameter].argument, value, bytes);
    else
        set_member(parameter, value, bytes);
}

void OpenCLKernel::set_member(std::size_t parameter, const void* value, std::size_t bytes) {
    const KernelParameter& member = (*parameters_)[parameter];
    require(bytes == member.bytes, "kernel '", name_, "': parameter '", member.name, "' has ",
            member.bytes, " bytes, and ", bytes, " were given");
    auto at = std::find_if(structs_.begin(), structs_.end(), [&](const StructArgument& argument) {
        return argument.index == member.argument;
    });
    if (at == structs_.end()) {
        std::vector<std::byte> zeros(struct_bytes(*parameters_, parameter));
        at = structs_.insert(at, {member.argument, std::move(zeros), false});
    }
    std::memcpy(at->value.data() + member.offset, value, bytes);
    at->changed = true;
}

void OpenCLKernel::set_structs() {
    for (StructArgument& argument : structs_) {
        if (argument.changed)
            set_argument(argument.index, argument.value.data(), argument.value.size());
        argument.changed = false;
    }
}

void OpenCLKernel::set_argument(int index, const void* value, std::size_t bytes) {
    if (kernel_ == nullptr) {
        std::erase_if(early_, [&](const Argument& argument) { return argument.index == index; });
        Argument argument{index, bytes, std::vector<std::byte>(value == nullptr ? 0 : bytes)};
        if (value != nullptr) std::memcpy(argument.value.data(), value, bytes);
        early_.push_back(std::move(argument));
        return;
    }
    if (program_->thread() == nullptr) return pass(index, value, bytes);
    const StoredArgument head{index, value == nullptr, bytes};
    const std::size_t at = changes_.size(), size = value == nullptr ? 0 : bytes;
    changes_.resize(at + sizeof(head) + size);
    std::memcpy(&changes_[at], &head, sizeof(head));
    if (size > 0) std::memcpy(&changes_[at + sizeof(head)], value, size);
}

void OpenCLKernel::pass(int index, const void* value, std::size_t bytes) {
    const cl_int code = clSetKernelArg(kernel_, static_cast<cl_uint>(index), bytes, value);
    if (code == CL_SUCCESS) [[likely]]
        return;
    const auto parameter =
        std::find_if(parameters_->begin(), parameters_->end(),
                     [&](const KernelParameter& p) { return p.argument == index; });
    cl_check(code, "kernel '", name_, "': setting parameter '",
             parameter->in.empty() ? parameter->name : parameter->in, "' (", bytes, " bytes)");
}

void OpenCLKernel::pass_all(const std::vector<std::byte>& arguments) {
    for (std::size_t at = 0; at < arguments.size();) {
        StoredArgument head;
        std::memcpy(&head, &arguments[at], sizeof(head));
        at += sizeof(head);
        pass(head.index, head.local ? nullptr : arguments.data() + at, head.bytes);
        if (!head.local) at += head.bytes;
    }
}

const std::string& OpenCLKernel::turn() {
    if (turn_.empty()) turn_ = hash_hex(cat(name_, '\0', program_->text_hash()));
    return turn_;
}

void OpenCLKernel::enqueue(cl_command_queue queue, const PartRange& range, cl_event* event) {
    const std::size_t* local = range.local[0] == 0 ? nullptr : range.local.data();
    const bool moved = range.offset != std::array<std::size_t, 3>{};
    const std::size_t* offset = moved ? range.offset.data() : nullptr;
    const auto enqueue_now = [&](cl_event* made) {
        return clEnqueueNDRangeKernel(queue, kernel_, static_cast<cl_uint>(range.dims), offset,
                                      range.global.data(), local, 0, nullptr, made);
    };
    KernelTurns& turns = KernelTurns::of_process();
    const bool in_turn = program_->takes_turns() && turns.are_taken();
    const cl_int code =
        in_turn ? turns.take(turn(), queue, range, enqueue_now, event) : enqueue_now(event);
    if (code != CL_SUCCESS) [[unlikely]]
        cl_check(code, "kernel '", name_, "': enqueueing it (", range_text(range), ")");
}

void OpenCLKernel::launch(cl_command_queue queue, const PartRange& range, cl_event* event) {
    compile();
    set_structs();
    if (!changes_.empty()) {
        pass_all(changes_);
        changes_.clear();
    }
    enqueue(queue, range, event);
}

void OpenCLKernel::record(std::vector<std::byte>& into) {
    recorded_ = true;
    set_structs();
    into.clear();
    into.swap(changes_);
}

void OpenCLKernel::launch_recorded(cl_command_queue queue, const PartRange& range,
                                   const std::vector<std::byte>& arguments) {
    pass_all(arguments);
    enqueue(queue, range, nullptr);
}

OpenCLProgram::OpenCLProgram(const OpenCLBuilds& builds, const ProgramSource& source,
                             LaunchThread* thread, double launch_seconds)
    : Program(source),
      builds_(builds),
      thread_(thread),
      launch_seconds_(can_be_split(source.source) ? launch_seconds : 0),
      parameters_(kernel_signatures(source.source)) {}

OpenCLProgram::~OpenCLProgram() {
    const cl_program program = program_.load();
    if (program != nullptr && !opencl_gone()) clReleaseProgram(program);
}

cl_program OpenCLProgram::handle() const {
    if (const cl_program program = program_.load()) return program;
    const std::lock_guard lock(mutex_);
    if (const cl_program program = program_.load()) return program;
    if (failed_) std::rethrow_exception(failed_);
    const WaitingForCompiler waiting(1);
    waiting.at(0);
    try {
        program_.store(builds_.make(source(), ahead_));
    } catch (const Error& error) {
        // A build error is permanent, because the text does not change. Lack of memory may be
        // temporary.
        if (error.kind() != ErrorKind::build) throw;
        failed_ = std::current_exception();
        throw;
    }
    return program_.load();
}

const std::string& OpenCLProgram::text_hash() const {
    std::call_once(hashed_, [this] { text_hash_ = hash_of(source()); });
    return text_hash_;
}

void OpenCLProgram::expect(std::string_view kernel, const std::array<std::size_t, 3>& group) const {
    if (compiled()) return;
    const std::lock_guard lock(expected_mutex_);
    expected_.emplace(kernel, group);
}

std::string OpenCLProgram::expected() const {
    const std::lock_guard lock(expected_mutex_);
    std::string lines;
    for (const auto& [kernel, group] : expected_)
        lines += cat(kernel, ' ', group[0], ' ', group[1], ' ', group[2], '\n');
    return lines;
}

const CompileTarget* OpenCLProgram::target() const {
    return builds_.disk().enabled() && !builds_.keeps(source()) ? &builds_ : nullptr;
}

const CompileTarget* OpenCLProgram::ahead_target() const {
    return builds_.disk().enabled() && !builds_.surely_keeps(source()) ? &builds_ : nullptr;
}

std::unique_ptr<Kernel> OpenCLProgram::kernel(std::string_view name) const {
    const auto found = kernel_named(parameters_, name, source().name);
    std::size_t parts = 1;
    if (launch_seconds_ > 0 && ExpectedSeconds::now() > launch_seconds_)
        parts = static_cast<std::size_t>(std::ceil(ExpectedSeconds::now() / launch_seconds_));
    auto kernel =
        std::make_unique<OpenCLKernel>(found->first, &found->second, shared_from_this(), parts);
    if (compiled()) kernel->compile();
    return kernel;
}

}  // namespace dlprim
