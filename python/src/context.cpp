// SPDX-License-Identifier: MIT
// Context and devices(), and information about them.
#include "bind.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>

namespace dlprim::python {
namespace {

std::string quoted(std::string_view text) {
    return nb::cast<std::string>(nb::repr(nb::str(text.data(), text.size())));
}

void bind_device_info(nb::module_& module) {
    nb::class_<DeviceInfo>(module, "DeviceInfo",
                           "The names of a device, and the text that selects it.")
        .def_ro("id", &DeviceInfo::id,
                R"("cpu" for the host, "P:D" for device D of OpenCL platform P.)")
        .def_ro("name", &DeviceInfo::name, "The name that the driver reports.")
        .def_ro("platform", &DeviceInfo::platform,
                R"(The OpenCL platform's name; "host" for the host.)")
        .def_ro("vendor", &DeviceInfo::vendor, "Who made it.")
        .def_ro("driver", &DeviceInfo::driver, "The driver's version.")
        .def_prop_ro(
            "kind", [](const DeviceInfo& self) { return name_of(self.kind); },
            R"("host", "cpu", "gpu" or "accelerator".)")
        .def_ro("memory_mib", &DeviceInfo::memory_mib, "Global memory in MiB.")
        .def("__str__", &DeviceInfo::str)
        .def("__repr__", [](const DeviceInfo& self) {
            return "DeviceInfo(id=" + quoted(self.id) + ", name=" + quoted(self.name) +
                   ", platform=" + quoted(self.platform) + ", kind=" + quoted(name_of(self.kind)) +
                   ", memory_mib=" + std::to_string(self.memory_mib) + ")";
        });
}

void bind_traits(nb::module_& module) {
    nb::class_<Traits>(module, "Traits", "Properties of a device by which engines are chosen.")
        .def_ro("host", &Traits::host, "Whether it is the host itself, without OpenCL.")
        .def_ro("wide_vectors", &Traits::wide_vectors, "A CPU with wide vectors.")
        .def_ro("vector_width", &Traits::vector_width, "Floats per native vector; 1 on GPUs.")
        .def_ro("vector_registers", &Traits::vector_registers,
                "Number of vector registers that a kernel can use (CPUs).")
        .def_ro("compute_units", &Traits::compute_units, "Cores or compute units.")
        .def_ro("own_cores", &Traits::own_cores,
                "Whether it is a CPU each of whose threads is bound to a core.")
        .def_ro("max_work_group", &Traits::max_work_group, "The most work-items of a work-group.")
        .def_ro("local_bytes", &Traits::local_bytes, "Local memory of a work-group, in bytes.")
        .def_ro("max_alloc_bytes", &Traits::max_alloc_bytes, "Largest single allocation, in bytes.")
        .def_ro("global_bytes", &Traits::global_bytes, "Global memory, in bytes.")
        .def_ro("cache_bytes", &Traits::cache_bytes, "Last-level cache, in bytes; 0 when unknown.")
        .def_ro("base_align_bytes", &Traits::base_align_bytes,
                "Alignment of offsets in memory, in bytes.")
        .def_ro("fp64", &Traits::fp64, "Whether it computes in float64.")
        .def_ro("fp16", &Traits::fp16, "Whether it computes in float16.")
        .def_ro("subgroup_size", &Traits::subgroup_size,
                "Lanes of a sub-group; 0 means that there are no sub-groups.")
        .def_ro("wgmma", &Traits::wgmma, "Whether NVIDIA's warpgroup matrix instructions work.")
        .def_ro("mma", &Traits::mma, "Whether NVIDIA's warp matrix instructions work.")
        .def_ro("mma_local_bytes", &Traits::mma_local_bytes,
                "Local memory of kernels with matrix instructions, in bytes.")
        .def_ro("matrix_fp16", &Traits::matrix_fp16, "Whether matrix instructions support float16.")
        .def_ro("matrix_bf16", &Traits::matrix_bf16,
                "Whether matrix instructions support bfloat16.")
        .def_ro("unified_memory", &Traits::unified_memory, "Whether host and device share memory.")
        .def_ro("gflops", &Traits::gflops, "Estimated float32 peak in 10^9 operations a second.")
        .def_ro("gbytes_per_s", &Traits::gbytes_per_s,
                "Estimated bandwidth in 10^9 bytes a second.")
        .def_ro("launch_us", &Traits::launch_us, "Estimated cost of a launch in microseconds.");
}

Counters difference(const Counters& a, const Counters& b) {
    return {a.launches - b.launches,       a.waits - b.waits,
            a.allocations - b.allocations, a.compiles - b.compiles,
            a.cache_hits - b.cache_hits,   a.allocated_bytes - b.allocated_bytes,
            a.flushes - b.flushes};
}

std::string text_of(const Counters& counters) {
    return "Counters(launches=" + std::to_string(counters.launches) +
           ", waits=" + std::to_string(counters.waits) +
           ", allocations=" + std::to_string(counters.allocations) +
           ", compiles=" + std::to_string(counters.compiles) +
           ", cache_hits=" + std::to_string(counters.cache_hits) +
           ", allocated_bytes=" + std::to_string(counters.allocated_bytes) +
           ", flushes=" + std::to_string(counters.flushes) + ")";
}

void bind_counters(nb::module_& module) {
    // Signed, so that differences are valid: memory may have been freed between two readings.
    const auto reader = [](auto member) {
        return [member](const Counters& self) { return static_cast<std::int64_t>(self.*member); };
    };
    nb::class_<Counters>(module, "Counters",
                         "What a context has done since it was opened. Subtract two readings to "
                         "count what happened between them.")
        .def_prop_ro("launches", reader(&Counters::launches), "Number of kernels enqueued.")
        .def_prop_ro("waits", reader(&Counters::waits), "How often the host waited.")
        .def_prop_ro("allocations", reader(&Counters::allocations), "Device buffers created.")
        .def_prop_ro("compiles", reader(&Counters::compiles), "Programs compiled from source.")
        .def_prop_ro("cache_hits", reader(&Counters::cache_hits),
                     "Programs loaded from the on-disk cache.")
        .def_prop_ro("allocated_bytes", reader(&Counters::allocated_bytes),
                     "Bytes of live device buffers.")
        .def_prop_ro("flushes", reader(&Counters::flushes),
                     "How often enqueued work was handed to the device.")
        .def("__sub__", &difference, nb::is_operator())
        .def("__repr__", &text_of);
}

std::string to_device(nb::handle device) {
    if (!PyUnicode_Check(device.ptr()))
        wrong_type("a device", "a str such as \"cpu\", \"gpu\", \"0:0\" or a part of a name",
                   device);
    std::string text;
    if (!nb::try_cast(device, text))
        throw nb::value_error("the name of a device holds characters that UTF-8 has not");
    return text;
}

Context open(nb::handle device) {
    const std::string text = to_device(device);
    const GilRelease release;
    if (text != "cpu" && text != "host") check_opencl_after_fork();
    Context context(text);
    register_context(context);
    return context;
}

std::vector<DeviceInfo> all_devices() {
    check_opencl_after_fork();
    return Context::devices();
}

std::vector<std::string> all_troubles() {
    check_opencl_after_fork();
    return Context::troubles();
}

DeviceInfo find_device(nb::handle device) {
    const std::string text = to_device(device);
    const GilRelease release;
    if (text != "cpu" && text != "host") check_opencl_after_fork();
    return Context::find(text);
}

[[noreturn]] void refuse_pickling(const Context& self) {
    throw nb::type_error(("a Context cannot be pickled, since it is an open device; open the "
                          "device where it is needed, with dlprim.Context(" +
                          quoted(self.info().id) + ")")
                             .c_str());
}

void bind_context_class(nb::module_& module) {
    nb::class_<Context>(module, "Context", nb::is_weak_referenceable(), R"(An opened device.

Copies of the handle, tensors and nets share the device, which is closed when the last of them is
gone. Work is asynchronous on OpenCL devices and done when a call returns on the host. Several
threads may use one Context; their calls run one after the other.)")
        .def(
            "__init__", [](Context* self, nb::handle device) { new (self) Context(open(device)); },
            nb::arg("device").none() = "", nb::sig("def __init__(self, device: str = '') -> None"),
            R"(Open a device.

device: "cpu" (the host), "P:D" (device D of OpenCL platform P), "gpu" (the best GPU), "opencl" (the
best OpenCL device), or a part of a device's or platform's name. Empty: what the environment variable
DLPRIM_DEVICE says, else the best OpenCL device, else the host. Raises NotFoundError, which lists the
devices that there are.)")
        .def_prop_ro("info", &Context::info, "The names of the device (DeviceInfo).")
        .def_prop_ro(
            "name", [](const Context& self) { return self.info().name; },
            "The name that the driver gives the device.")
        .def_prop_ro("traits", &Context::traits, "Properties of the device (Traits).")
        .def_prop_ro("counters", &Context::counters, "What has been done so far (Counters).")
        .def(
            "finish",
            [](const Context& self) {
                const ContextLock lock(self);
                self.finish();
            },
            "Wait until all enqueued work is done. Raise InvalidArgumentError if a kernel found an "
            "index out of range since the last wait, as numpy() of a tensor does.")
        .def(
            "__eq__", [](const Context& self, const Context& other) { return self == other; },
            nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__",
             [](const Context& self) { return std::hash<const void*>()(self.identity()); })
        .def("__copy__", [](const Context& self) { return self; })
        .def(
            "__deepcopy__", [](const Context& self, nb::handle) { return self; }, nb::arg("memo"))
        .def("__reduce__", &refuse_pickling, nb::sig("def __reduce__(self) -> typing.NoReturn"))
        .def("__repr__", [](const Context& self) {
            return "Context(" + quoted(self.info().id) + ": " + self.info().name + ", " +
                   self.info().platform + ")";
        });
}

}  // namespace

void bind_context(nb::module_& module) {
    bind_device_info(module);
    bind_traits(module);
    bind_counters(module);
    bind_context_class(module);
    module.def("devices", &all_devices, nb::call_guard<GilRelease>(),
               "Return every device of this machine, the host last (a list of DeviceInfo).");
    module.def("find", &find_device, nb::arg("device").none() = "",
               nb::sig("def find(device: str = '') -> DeviceInfo"),
               "Return the device that Context(device) opens, without opening it; raises "
               "NotFoundError as Context does.");
    module.def("troubles", &all_troubles, nb::call_guard<GilRelease>(),
               "Return why OpenCL devices are missing or cannot be opened: a list of sentences "
               "that also say what would help. It is empty if nothing is known to be wrong.");
}

}  // namespace dlprim::python
