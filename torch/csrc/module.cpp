// SPDX-License-Identifier: MIT
// The Python module dlprim_torch._C: what torch.ocl asks of C++. Loading it registers everything
// else.
#include "device/devices.hpp"
#include "device/errors.hpp"
#include "device/generator.hpp"
#include "device/workers.hpp"
#include "distributed/backend.hpp"
#include "distributed/communication_thread.hpp"
#include "fallback/fallback.hpp"
#include "function/function.hpp"
#include "ops/row_program.hpp"

#include <dlprim/compile_wait.hpp>

#include <ATen/ScalarOps.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <optional>

namespace py = pybind11;

namespace dlprim_torch {
namespace {

py::dict properties(int device) {
    const dp::Context& own = context(device);
    const dp::DeviceInfo& info = own.info();
    const dp::Traits& traits = own.traits();
    py::dict found;
    found["name"] = info.name;
    found["id"] = info.id;
    found["platform"] = info.platform;
    found["vendor"] = info.vendor;
    found["driver"] = info.driver;
    found["kind"] = std::string(dp::name_of(info.kind));
    found["total_memory"] = traits.global_bytes;
    found["max_alloc_bytes"] = traits.max_alloc_bytes;
    found["local_bytes"] = traits.local_bytes;
    found["multi_processor_count"] = traits.compute_units;
    found["max_work_group"] = traits.max_work_group;
    found["fp64"] = traits.fp64;
    found["fp16"] = traits.fp16;
    return found;
}

py::dict counters(int device) {
    const dp::Counters own = context(device).counters();
    py::dict found;
    found["launches"] = own.launches;
    found["waits"] = own.waits;
    found["allocations"] = own.allocations;
    found["compiles"] = own.compiles;
    found["allocated_bytes"] = own.allocated_bytes;
    return found;
}

/// Waits for compilers show a line on the terminal, end with Ctrl-C, and are "ocl::compile" to
/// PyTorch's profiler, not a part of the operator that waits.
void watch_compilers() {
    dp::set_compile_wait([line = dp::compile_wait_line()](const dp::CompileWait& wait) {
        thread_local std::optional<at::RecordFunction> recorded;  // of this thread's wait
        if (wait.ended) {
            recorded.reset();
        } else {
            if (!recorded) {
                recorded.emplace(at::RecordScope::FUNCTION);
                if (recorded->isActive()) recorded->before("ocl::compile");
            }
            const py::gil_scoped_acquire gil;
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        }
        line(wait);
    });
    // Nobody is to wait for the interpreter's lock once the interpreter ends.
    py::module_::import("atexit").attr("register")(
        py::cpp_function([] { dp::set_compile_wait({}); }));
}

py::bytes rng_state(int device) {
    const at::Tensor state = default_generator(device).get_state();
    return {static_cast<const char*>(state.const_data_ptr()),
            static_cast<std::size_t>(state.numel())};
}

void set_rng_state(int device, const std::string& bytes) {
    at::Tensor state = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
    std::memcpy(state.mutable_data_ptr(), bytes.data(), bytes.size());
    at::Generator own = default_generator(device);
    const std::lock_guard lock(own.mutex());
    own.set_state(state);
}

void manual_seed(int device, std::uint64_t seed) {
    at::Generator own = default_generator(device);
    const std::lock_guard lock(own.mutex());
    own.set_current_seed(seed);
}

c10::intrusive_ptr<c10d::Backend> distributed_backend(const c10::intrusive_ptr<c10d::Backend>& gloo,
                                                      std::int64_t timeout_ms) {
    return c10::make_intrusive<OclBackend>(gloo, std::chrono::milliseconds(timeout_ms));
}

void end() {
    stop_communication_threads(std::chrono::seconds(2));
    settle_workers(std::chrono::seconds(2));
    shut_down();
}

std::vector<std::string> row_overloads() {
    std::vector<std::string> all;
    for (const Row& row : all_rows())
        all.insert(all.end(), row.overloads.begin(), row.overloads.end());
    return all;
}

py::dict described(const Program& program, bool keep_dim) {
    py::list inputs, scalars;
    for (const at::Tensor& input : program.inputs) inputs.append(py::cast(input));
    for (const dp::Scalar& scalar : program.scalars)
        std::visit([&](auto value) { scalars.append(value); }, scalar);
    py::dict found;
    found["code"] = program.code;
    found["inputs"] = inputs;
    found["scalars"] = scalars;
    found["keep_dim"] = keep_dim;
    return found;
}

/// The argument as an operator takes it; a number in place of a tensor is one of PyTorch's wrapped
/// numbers, as in a call.
c10::IValue argument_of(const c10::Argument& argument, const py::kwargs& given) {
    if (!given.contains(argument.name().c_str()))
        return argument.default_value().value_or(c10::IValue());
    const py::object value = given[argument.name().c_str()];
    const bool number = PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr());
    if (number && argument.type()->kind() == c10::TypeKind::TensorType)
        return at::native::wrapped_scalar_tensor(
            torch::jit::toIValue(value, c10::NumberType::get()).toScalar());
    return torch::jit::toIValue(value, argument.type());
}

/// The Pointwise operators of a call of aten's overload with named arguments; none where no row
/// serves it. Tensors among the arguments come back as inputs. Where there is a second operator,
/// the tensor behind it stands for the first one's result.
py::list row_programs(const std::string& name, const std::string& overload, std::int64_t numel,
                      const py::kwargs& arguments) {
    py::list made;
    const auto op = c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
    const auto match = op ? row_of(*op) : std::nullopt;
    if (!match) return made;
    torch::jit::Stack stack;
    for (const c10::Argument& argument : match->op.schema().arguments())
        stack.push_back(argument_of(argument, arguments));
    RowProgram program = row_program(*match, stack, numel);
    made.append(described(program.first, program.keep_dim));
    if (program.second) {
        made.append(described(*program.second, false));
        made.append(py::cast(program.result));
    }
    return made;
}

std::unique_ptr<Function> make_function(int device, const std::string& json, std::string name,
                                        std::vector<std::string> constants, bool training) {
    return std::make_unique<Function>(
        device, json,
        dp::FunctionOptions{
            .name = std::move(name), .constants = std::move(constants), .training = training});
}

void set_frame(Function& function, std::vector<std::size_t> places, int draws,
               std::vector<at::Tensor> results,
               std::vector<std::pair<std::size_t, std::size_t>> writes) {
    function.set_frame({std::move(places), draws, std::move(results), std::move(writes)});
}

}  // namespace

PYBIND11_MODULE(_C, m) {
    pass_warnings_on();
    watch_compilers();
    const auto no_gil = py::call_guard<py::gil_scoped_release>();
    m.def("device_count", &device_count);
    m.def("why", &why);
    m.def("current_device", &current_device);
    m.def("set_device", &set_current_device);
    m.def("is_open", [](int device) { return opened(device).has_value(); });
    m.def(
        "open", [](int device) { context(device); }, no_gil);
    m.def("synchronize", &synchronize, no_gil);
    m.def("empty_cache", &let_caches_go, no_gil);
    m.def("in_bad_fork", &in_bad_fork);
    m.def("shut_down", &end, no_gil);
    m.def("device_name",
          [](int device) { return devices().at(static_cast<std::size_t>(device)).name; });
    m.def("properties", &properties);
    m.def("counters", &counters);
    m.def("manual_seed", &manual_seed);
    m.def("initial_seed", [](int device) { return default_generator(device).current_seed(); });
    m.def("seed", [](int device) { return at::Generator(default_generator(device)).seed(); });
    m.def("rng_state", &rng_state);
    m.def("set_rng_state", &set_rng_state);
    m.def("fallback_counts", &fallback_counts);
    m.def("reset_fallback_counts", &reset_fallback_counts);
    m.def("fallback_mode", &fallback_mode);
    m.def("set_fallback_mode", &set_fallback_mode);
    m.def("distributed_backend", &distributed_backend);
    m.def("row_overloads", &row_overloads);
    py::class_<Function>(m, "Function")
        .def(py::init(&make_function), no_gil, py::arg("device"), py::arg("json"), py::arg("name"),
             py::arg("constants"), py::arg("training"))
        .def("set_frame", &set_frame, py::arg("places"), py::arg("draws"), py::arg("results"),
             py::arg("writes"))
        .def("__call__", &Function::operator(), no_gil);
    m.def("row_programs", &row_programs);
}

}  // namespace dlprim_torch
