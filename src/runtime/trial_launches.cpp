// SPDX-License-Identifier: MIT
// TrialLaunches.
#include "runtime/trial_launches.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

namespace dlprim {
namespace {

/// What each size, stride, offset and count is: as many floats as the widest vector has, so that
/// vectors lie where the compiler expects them, and loops are short.
constexpr std::uint64_t number = 16;
/// Products of several such numbers lead far. The system gives the memory page by page as it is
/// touched, which little of it is. Pointers are to its middle, since some positions are negative.
constexpr std::size_t most_zeros = std::size_t{8} << 30, page = 4096;
constexpr std::size_t local_bytes = 4096;
/// What is cleared before each launch, on both sides of the middle: a kernel may take what another
/// one has written for indices.
constexpr std::size_t cleared = 64 << 10;
/// A kernel that runs longer is taken to run for ever.
constexpr std::chrono::milliseconds patience{2000}, poll{1};

bool is_pointer(const KernelParameter& parameter) {
    return parameter.type.find('*') != std::string::npos;
}

/// Sets a number, or the first of a vector. Only the driver knows the size of
/// a type that the text has defined, and refuses others.
bool set_number(cl_kernel kernel, cl_uint index) {
    const std::array<std::uint64_t, 16> values{number};
    for (const std::size_t bytes : {4, 8, 2, 1, 16, 32, 64, 128})
        if (clSetKernelArg(kernel, index, bytes, values.data()) == CL_SUCCESS) return true;
    return false;
}

/// The struct that a parameter is a member of, with all members set.
std::vector<std::byte> struct_of_numbers(const std::vector<KernelParameter>& parameters,
                                         std::size_t index) {
    std::vector<std::byte> bytes(struct_bytes(parameters, index));
    for (const KernelParameter& member : parameters)
        if (member.argument == parameters[index].argument)
            std::memcpy(bytes.data() + member.offset, &number, member.bytes);
    return bytes;
}

}  // namespace

TrialLaunches::~TrialLaunches() {
    if (zeros_ != nullptr) clReleaseMemObject(zeros_);
    if (memory_ != nullptr) clReleaseMemObject(memory_);
    if (queue_ != nullptr) clReleaseCommandQueue(queue_);
}

bool TrialLaunches::launch_all(cl_program program, const ProgramSource& source,
                               const std::string& launches) {
    for (const auto& [name, parameters] : kernel_signatures(source.source)) {
        cl_int code = CL_SUCCESS;
        const cl_kernel kernel = clCreateKernel(program, name.c_str(), &code);
        if (code != CL_SUCCESS) continue;  // the preprocessor has removed it
        const std::vector<WorkGroup> groups = groups_of(kernel, name, launches);
        const bool ended = groups.empty() || !prepare(kernel, parameters) ||
                           std::all_of(groups.begin(), groups.end(), [&](const WorkGroup& group) {
                               return launch(kernel, group);
                           });
        clReleaseKernel(kernel);
        if (!ended) return false;
    }
    return true;
}

/// The sizes of work-groups with which a kernel is compiled.
std::vector<WorkGroup> TrialLaunches::groups_of(cl_kernel kernel, const std::string& name,
                                                const std::string& launches) const {
    WorkGroup said{};
    if (clGetKernelWorkGroupInfo(kernel, device_, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(said),
                                 said.data(), nullptr) == CL_SUCCESS &&
        said[0] != 0)
        return {said};
    return expected_groups(launches, name);
}

void TrialLaunches::make_zeros() {
    cl_ulong most = 0;
    clGetDeviceInfo(device_, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, nullptr);
    cl_int code = CL_SUCCESS;
    const std::size_t size = std::min<std::size_t>(most, most_zeros) / 2 / page * page;
    const cl_buffer_region half{size, size};  // begins where devices let a part of memory begin
    memory_ = clCreateBuffer(context_, CL_MEM_READ_WRITE, half.origin + half.size, nullptr, &code);
    if (code != CL_SUCCESS) return;
    zeros_ =
        clCreateSubBuffer(memory_, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &code);
    if (code != CL_SUCCESS) zeros_ = nullptr;
    middle_ = half.origin;
}

/// Sets all arguments. Returns false if the kernel is to be passed over.
bool TrialLaunches::prepare(cl_kernel kernel, const std::vector<KernelParameter>& parameters) {
    if (queue_ == nullptr) queue_ = cl_make_queue(context_, device_, 0);
    if (memory_ == nullptr) make_zeros();
    if (zeros_ == nullptr) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (!set(kernel, parameters, i)) return false;
    return true;
}

bool TrialLaunches::set(cl_kernel kernel, const std::vector<KernelParameter>& parameters,
                        std::size_t index) {
    const KernelParameter& parameter = parameters[index];
    const auto argument = static_cast<cl_uint>(parameter.argument);
    if (!parameter.in.empty()) {
        if (parameter.offset > 0) return true;  // set with the first member
        const std::vector<std::byte> numbers = struct_of_numbers(parameters, index);
        return clSetKernelArg(kernel, argument, numbers.size(), numbers.data()) == CL_SUCCESS;
    }
    if (!is_pointer(parameter)) return set_number(kernel, argument);
    const bool is_local = parameter.type.find("local") != std::string::npos;
    return clSetKernelArg(kernel, argument, is_local ? local_bytes : sizeof(cl_mem),
                          is_local ? nullptr : &zeros_) == CL_SUCCESS;
}

/// Runs one work-group. Returns false if it does not end.
bool TrialLaunches::launch(cl_kernel kernel, const WorkGroup& group) {
    const cl_uint zero = 0;
    clEnqueueFillBuffer(queue_, memory_, &zero, sizeof(zero), middle_ - cleared, 2 * cleared, 0,
                        nullptr, nullptr);
    cl_event event = nullptr;
    if (clEnqueueNDRangeKernel(queue_, kernel, 3, nullptr, group.data(), group.data(), 0, nullptr,
                               &event) != CL_SUCCESS ||
        clFlush(queue_) != CL_SUCCESS)
        return true;
    cl_int status = CL_QUEUED;
    for (auto left = patience; left > poll && status > CL_COMPLETE;) {
        if (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                           nullptr) != CL_SUCCESS)
            break;
        std::this_thread::sleep_for(poll);
        if (status == CL_RUNNING) left -= poll;  // it is compiled before it runs
    }
    clReleaseEvent(event);
    return status <= CL_COMPLETE;
}

}  // namespace dlprim
