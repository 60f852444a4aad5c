// SPDX-License-Identifier: MIT
// Programs and kernels on OpenCL: arguments by name, errors that name kernel and parameter.
#include "runtime/opencl_program.hpp"

#include "runtime/kernel_parameters.hpp"

namespace dlprim {

OpenCLKernel::~OpenCLKernel() {
    if (!opencl_gone()) clReleaseKernel(kernel_);
}

int OpenCLKernel::index_of(std::string_view parameter) const {
    for (std::size_t i = 0; i < parameters_->size(); ++i)
        if ((*parameters_)[i] == parameter) return static_cast<int>(i);
    fail(ErrorKind::invalid_argument, "kernel '", name_, "' has no parameter '", parameter,
         "', only ", join(*parameters_, ", "));
}

void OpenCLKernel::set(int index, const Buffer& buffer) {
    const cl_mem memory = static_cast<cl_mem>(buffer.handle());
    set(index, &memory, sizeof(memory));
}

void OpenCLKernel::set(int index, const void* value, std::size_t bytes) {
    const cl_int code = clSetKernelArg(kernel_, static_cast<cl_uint>(index), bytes, value);
    if (code == CL_SUCCESS) [[likely]]
        return;
    const bool known = index >= 0 && index < parameter_count();
    cl_check(code, "kernel '", name_, "': setting parameter '",
             known ? (*parameters_)[static_cast<std::size_t>(index)] : std::to_string(index), "' (",
             bytes, " bytes)");
}

OpenCLProgram::OpenCLProgram(cl_program program, const ProgramSource& source)
    : Program(source), program_(program), parameters_(kernel_parameters(source.source)) {}

OpenCLProgram::~OpenCLProgram() {
    if (!opencl_gone()) clReleaseProgram(program_);
}

std::unique_ptr<Kernel> OpenCLProgram::kernel(std::string_view name) const {
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) {
        std::vector<std::string> names;
        for (const auto& entry : parameters_) names.push_back(entry.first);
        fail(ErrorKind::not_found, "program '", source().name, "' has no kernel '", name,
             "' in its text, only ", join(names, ", "));
    }
    cl_int code = CL_SUCCESS;
    const cl_kernel handle = clCreateKernel(program_, found->first.c_str(), &code);
    cl_check(code, "program '", source().name, "': making kernel '", name, "'");
    auto kernel =
        std::make_unique<OpenCLKernel>(handle, found->first, &found->second, shared_from_this());
    cl_uint count = 0;
    cl_check(clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr),
             "kernel '", name, "': counting its parameters");
    require(count == found->second.size(), "kernel '", name, "' of '", source().name, "' takes ",
            count, " parameters, but its text names ", found->second.size(), ": ",
            join(found->second, ", "));
    return kernel;
}

}  // namespace dlprim
