// SPDX-License-Identifier: MIT
// TrialLaunches: launches of kernels whose results nobody wants, for drivers that compile a kernel
// when it is first launched. Only a process that compiles for another one makes them
// (runtime/compile_server.hpp), since nothing is known of a kernel's arguments: each pointer is to
// the same zeros and each number is the same, so a kernel may end its process.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/expected_launches.hpp"
#include "runtime/kernel_parameters.hpp"
#include "runtime/program.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

class TrialLaunches {
  public:
    /// The context and the device must outlive this object.
    TrialLaunches(cl_context context, cl_device_id device) : context_(context), device_(device) {}
    ~TrialLaunches();
    TrialLaunches(const TrialLaunches&) = delete;
    TrialLaunches& operator=(const TrialLaunches&) = delete;

    /// Runs one work-group of each kernel that says in its text how large its work-groups are, or
    /// for which `launches` has sizes (runtime/expected_launches.hpp). For others the driver's
    /// result would depend on the launch. A kernel that cannot be launched is passed over.
    /// Returns false if one does not end; then this process must.
    bool launch_all(cl_program program, const ProgramSource& source,
                    const std::string& launches = {});

  private:
    void make_zeros();
    std::vector<WorkGroup> groups_of(cl_kernel kernel, const std::string& name,
                                     const std::string& launches) const;
    bool prepare(cl_kernel kernel, const std::vector<KernelParameter>& parameters);
    bool set(cl_kernel kernel, const std::vector<KernelParameter>& parameters, std::size_t index);
    bool launch(cl_kernel kernel, const WorkGroup& group);

    cl_context context_;
    cl_device_id device_;
    cl_command_queue queue_ = nullptr;
    cl_mem memory_ = nullptr, zeros_ = nullptr;  ///< all of it, and its second half
    std::size_t middle_ = 0;                     ///< where that begins
};

}  // namespace dlprim
