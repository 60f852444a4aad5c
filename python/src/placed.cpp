// SPDX-License-Identifier: MIT
// PlacedNet and PlacedSolver: include/dlprim/placed_net.hpp for Python. The classes of the package
// derive from these ones (python/dlprim/placed.py).
#include "net_options.hpp"
#include "net_values.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace dlprim::python {
namespace placed {
namespace {

namespace fs = std::filesystem;

/// As Owned, with the locks of several contexts.
template <typename T>
class OwnedOnMany {
  public:
    template <typename Make>
    OwnedOnMany(std::vector<Context> contexts, Make&& make) : contexts_(std::move(contexts)) {
        const ContextLocks lock(contexts_);
        object_ = make();
    }
    ~OwnedOnMany() {
        try {
            // When Python ends, a thread may hold a lock forever.
            if (!is_ending()) {
                const ContextLocks lock(contexts_);
                object_.reset();
            }
        } catch (const Error&) {
            // In a child of fork(), the devices' memory belongs to the parent.
        }
        static_cast<void>(object_.release());
    }
    OwnedOnMany(const OwnedOnMany&) = delete;
    OwnedOnMany& operator=(const OwnedOnMany&) = delete;

    const std::vector<Context>& contexts() const { return contexts_; }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

  private:
    std::vector<Context> contexts_;
    std::unique_ptr<T> object_;
};

using OwnedNet = OwnedOnMany<PlacedNet>;
using OwnedSolver = OwnedOnMany<PlacedSolver>;

/// A method for Python of `call(object, arguments...)`, which holds the locks.
template <typename... Args, typename T, typename Call>
auto with_locks(T*, Call call) {
    return [call](const OwnedOnMany<T>& self, const Args&... args) {
        const ContextLocks lock(self.contexts());
        return call(*self, args...);
    };
}
template <typename... Args, typename Call>
auto of_net(Call call) {
    return with_locks<Args...>(static_cast<PlacedNet*>(nullptr), call);
}
template <typename... Args, typename Call>
auto of_solver(Call call) {
    return with_locks<Args...>(static_cast<PlacedSolver*>(nullptr), call);
}

template <typename Value>
void set_field(nb::handle value, Value& field, const std::string& name) {
    if (!nb::try_cast(value, field))
        throw nb::type_error((name + " cannot be " + kind_of(value)).c_str());
}

SolverOptions solver_options(const nb::dict& keywords) {
    SolverOptions o;
    const std::map<std::string, std::function<void(nb::handle, const std::string&)>> fields{
        {"learning_rate", [&](auto v, const auto& n) { set_field(v, o.learning_rate, n); }},
        {"momentum", [&](auto v, const auto& n) { set_field(v, o.momentum, n); }},
        {"nesterov", [&](auto v, const auto& n) { set_field(v, o.nesterov, n); }},
        {"beta1", [&](auto v, const auto& n) { set_field(v, o.beta1, n); }},
        {"beta2", [&](auto v, const auto& n) { set_field(v, o.beta2, n); }},
        {"epsilon", [&](auto v, const auto& n) { set_field(v, o.epsilon, n); }},
        {"weight_decay", [&](auto v, const auto& n) { set_field(v, o.weight_decay, n); }},
        {"clip_norm", [&](auto v, const auto& n) { set_field(v, o.clip_norm, n); }},
        {"clip_value", [&](auto v, const auto& n) { set_field(v, o.clip_value, n); }},
        {"accumulate", [&](auto v, const auto& n) { set_field(v, o.accumulate, n); }},
        {"shards", [&](auto v, const auto& n) { set_field(v, o.shards, n); }},
        {"loss_scale", [&](auto v, const auto& n) { set_field(v, o.loss_scale, n); }},
        {"loss_scale_steps", [&](auto v, const auto& n) { set_field(v, o.loss_scale_steps, n); }},
        {"average", [&](auto v, const auto& n) { set_field(v, o.average, n); }},
        {"guard_loss", [&](auto v, const auto& n) { set_field(v, o.guard_loss, n); }},
    };
    for (const auto [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "kind") {
            std::string kind;
            set_field(value, kind, name);
            o.kind = kind == "sgd" ? SolverOptions::Kind::sgd : SolverOptions::Kind::adam;
            if (kind == "adamw") o.kind = SolverOptions::Kind::adamw;
            if (kind != "sgd" && kind != "adam" && kind != "adamw")
                throw Error(ErrorKind::invalid_argument,
                            "solver '" + kind + "' is none of 'sgd', 'adam' and 'adamw'");
            continue;
        }
        const auto found = fields.find(name);
        if (found == fields.end()) {
            std::vector<std::string> names{"kind"};
            for (const auto& [known, set] : fields) names.emplace_back(known);
            throw nb::type_error(
                ("PlacedSolver has no option '" + name + "'" + name_hint(name, names)).c_str());
        }
        found->second(value, name);
    }
    return o;
}

void make_net(OwnedNet* self, const nb::dict& on, const std::string& text, bool is_path,
              const nb::dict& keywords, const std::string& place,
              const std::map<std::string, std::uint64_t>& memory_limits,
              const std::optional<nb::dict>& solver) {
    std::vector<NamedDevice> devices;
    std::vector<Context> contexts;
    for (const auto [name, context] : on) {
        devices.push_back({nb::cast<std::string>(name), to_context(context)});
        contexts.push_back(devices.back().context);
    }
    const NetOptions options = net_options(keywords);
    PlacementOptions placement;
    placement.automatic = place != "named";
    placement.measure = place == "measured";
    placement.memory_limits = memory_limits;
    if (solver) placement.solver = solver_options(*solver);
    new (self) OwnedNet(std::move(contexts), [&] {
        return std::make_unique<PlacedNet>(
            is_path ? PlacedNet::from_json_file(devices, text, options, placement)
                    : PlacedNet::from_json(devices, text, options, placement));
    });
}

void make_solver(OwnedSolver* self, const OwnedNet& net, const nb::dict& keywords) {
    const SolverOptions options = solver_options(keywords);
    new (self)
        OwnedSolver(net.contexts(), [&] { return std::make_unique<PlacedSolver>(*net, options); });
}

void set_input(const OwnedNet& net, const std::string& name, nb::handle values) {
    const HostArray array = to_host_array(values);
    const ContextLocks lock(net.contexts());
    const Shape wanted = net->input_shape(name);
    if (array.shape != wanted)
        throw Error(ErrorKind::invalid_argument, "input '" + name + "' takes an array of shape " +
                                                     wanted.str() + ", got " + array.shape.str());
    const DType dtype = net->input_dtype(name);
    const std::vector<std::byte> data =
        converted(array, dtype, "the array for input '" + name + "'");
    net->set_input(name, data.data(), data.size());
}

nb::dict weights(const OwnedNet& net) {
    nb::dict result;
    const auto read = of_net<std::string>(
        [](PlacedNet& own, const std::string& name) { return own.read_param(name); });
    for (const std::string& name : of_net([](PlacedNet& own) { return own.param_names(); })(net))
        result[name.c_str()] = to_array(read(net, name));
    return result;
}

void bind_records(nb::module_& module) {
    using Part = PlacedNet::Part;
    nb::class_<Part>(module, "PlacedPart", "Operators of a PlacedNet that run together.")
        .def_ro("device", &Part::device, "The name of their device.")
        .def_ro("operators", &Part::operators, "Their names, in order.")
        .def_ro("estimated_ms", &Part::estimated_ms,
                "What automatic placement reckoned with for a batch; 0 without it.")
        .def_ro("estimated_bytes", &Part::estimated_bytes, "Peak memory of their plan, likewise.");
    using Move = PlacedNet::Move;
    nb::class_<Move>(module, "PlacedMove", "What moves between two devices of a PlacedNet.")
        .def_ro("value", &Move::value, "The value that moves, or whose gradient does.")
        .def_ro("gradient", &Move::gradient, "Whether it is the gradient.")
        .def_ro("source", &Move::from, "The name of the device that it comes from.")
        .def_ro("target", &Move::to, "The name of the device that it goes to.")
        .def_ro("bytes", &Move::bytes, "Its size.")
        .def_ro("times", &Move::times, "How often it has moved so far.");
}

using NetClass = nb::class_<OwnedNet>;

void bind_facts(NetClass& net) {
    net.def_prop_ro("device_names", of_net([](PlacedNet& own) { return own.device_names(); }),
                    "Names that are bound, and the host's if it was added.")
        .def_prop_ro("input_names", of_net([](PlacedNet& own) { return own.input_names(); }),
                     "In declared order.")
        .def_prop_ro("output_names", of_net([](PlacedNet& own) { return own.output_names(); }),
                     "In declared order.")
        .def_prop_ro("loss_names", of_net([](PlacedNet& own) { return own.loss_names(); }),
                     "Outputs that are losses.")
        .def_prop_ro("param_names", of_net([](PlacedNet& own) { return own.param_names(); }),
                     "Trained and not.")
        .def("parts", of_net([](PlacedNet& own) { return own.parts(); }),
             "PlacedParts in the order in which forward runs them.")
        .def("moves", of_net([](PlacedNet& own) { return own.moves(); }),
             "PlacedMoves: what moves in each forward and backward.")
        .def("is_trainable", of_net<std::string>([](PlacedNet& own, const std::string& name) {
                 return own.is_trainable(name);
             }),
             nb::arg("param"), "Whether a solver changes the parameter.")
        .def(
            "input_shape",
            [](const OwnedNet& self, const std::string& name) {
                return to_tuple(of_net<std::string>([](PlacedNet& own, const std::string& n) {
                    return own.input_shape(n);
                })(self, name));
            },
            nb::arg("name"), nb::sig("def input_shape(self, name: str) -> tuple[int, ...]"),
            "The input's sizes, slowest dimension first. Raises NotFoundError.")
        .def("planned_peak_bytes", of_net([](PlacedNet& own) { return own.planned_peak_bytes(); }),
             "Peak memory of each device in bytes, by name.")
        .def("notes", of_net([](PlacedNet& own) { return own.notes(); }),
             "Remarks on the placement, and of the planner. Plans and compiles.");
}

void bind_values(NetClass& net) {
    const auto tensor = [&](const char* name, auto call, const char* text) {
        net.def(name, of_net<std::string>(call), nb::arg("name"), text);
    };
    using Name = const std::string&;
    tensor(
        "input", [](PlacedNet& own, Name name) { return own.input(name); },
        "An input's own Tensor, on the device of its first reader. Raises NotFoundError.");
    tensor(
        "output", [](PlacedNet& own, Name name) { return own.output(name); },
        "An output's own Tensor, on the device that makes it. Raises NotFoundError.");
    tensor(
        "param", [](PlacedNet& own, Name name) { return own.param(name); },
        "A parameter's own Tensor. Call params_changed() after writing to it. Raises "
        "NotFoundError.");
    tensor(
        "gradient", [](PlacedNet& own, Name name) { return own.gradient(name); },
        "The gradient of a parameter or, with input_gradients, of an input. Raises "
        "NotFoundError.");
    net.def("set_input", set_input, nb::arg("name"), nb::arg("array"),
            nb::sig("def set_input(self, name: str, array: numpy.typing.ArrayLike) -> None"),
            "Copies an array of the input's shape to every device that reads the input. Raises "
            "InvalidArgumentError on another shape.")
        .def("weights", weights,
             nb::sig("def weights(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Copies of all parameters as numpy arrays, by name.")
        .def("initialize", of_net<std::string>([](PlacedNet& own, const std::string& method) {
                 own.initialize(method);
             }),
             nb::arg("method") = "default",
             "Gives all parameters their first values: 'default', 'he' or 'xavier'.")
        .def("load_weights",
             of_net<fs::path, bool>([](PlacedNet& own, const fs::path& path, bool missing_ok) {
                 own.load_weights(path.string(), missing_ok);
             }),
             nb::arg("path"), nb::arg("missing_ok") = false,
             "Every parameter from an HDF5 file, which may be a Net's. Raises FileError, "
             "FormatError, NotFoundError.")
        .def("save_weights", of_net<fs::path>([](PlacedNet& own, const fs::path& path) {
                 own.save_weights(path.string());
             }),
             nb::arg("path"), "Writes every parameter to an HDF5 file, which a Net loads, too.")
        .def("params_changed", of_net([](PlacedNet& own) { own.params_changed(); }),
             "To be called after writing to param() tensors.");
}

void bind_runs(NetClass& net) {
    net.def("prepare", of_net([](PlacedNet& own) { own.prepare(); }),
            "Plans, compiles and allocates. Raises OutOfMemoryError where parts do not fit a "
            "device together.")
        .def("enqueue_forward", of_net([](PlacedNet& own) { own.forward(); }),
             "What forward() does without setting inputs or returning outputs.")
        .def("backward", of_net([](PlacedNet& own) { own.backward(); }),
             "Enqueues the gradients of the last forward().")
        .def("first_nan", of_net([](PlacedNet& own) { return own.first_nan(); }),
             "Runs forward again on the same inputs: the first operator whose output is not "
             "finite, or an empty str. Waits.");
}

void bind_solver_class(nb::module_& module) {
    nb::class_<OwnedSolver>(module, "PlacedSolver",
                            "Trains a PlacedNet. Programs use dlprim.PlacedSolver.")
        .def("__init__", make_solver, nb::arg("net"), nb::arg("options"),
             nb::sig("def __init__(self, net: PlacedNet, options: dict[str, typing.Any]) -> None"),
             "dlprim.PlacedSolver documents the options.")
        .def("step", of_solver([](PlacedSolver& own) { own.step(); }),
             "Forward, backward and, at every accumulate-th call, the update.")
        .def("output_of_batch",
             of_solver<std::string>([](PlacedSolver& own, const std::string& name) {
                 return own.output_of_batch(name);
             }),
             nb::arg("name"),
             "The Tensor that holds this output of whole batches after each later step: with "
             "shards the rows of all of them. Raises NotFoundError, InvalidArgumentError.")
        .def("call_off", of_solver<int>([](PlacedSolver& own, int back) { own.call_off(back); }),
             nb::arg("back") = 1,
             "With guard_loss: undoes the last `back` steps, which are those from the first on "
             "whose loss was not finite, so that training goes on. Raises InvalidArgumentError.")
        .def("use_averages", of_solver([](PlacedSolver& own) { own.use_averages(); }),
             "With average: gives the parameters that are trained their averages, for good.")
        .def_prop_rw(
            "learning_rate", of_solver([](PlacedSolver& own) { return own.learning_rate(); }),
            of_solver<double>([](PlacedSolver& own, double rate) { own.set_learning_rate(rate); }),
            "The learning rate from the next step on.")
        .def_prop_ro("steps", of_solver([](PlacedSolver& own) { return own.steps(); }),
                     "Updates done.")
        .def("save_checkpoint",
             of_solver<fs::path, std::map<std::string, double>>(
                 [](PlacedSolver& own, const fs::path& path,
                    const std::map<std::string, double>& extra) {
                     own.save_checkpoint(path.string(), extra);
                 }),
             nb::arg("path"), nb::arg("extra") = std::map<std::string, double>{},
             "Writes what Solver.save_checkpoint() writes, without a trace of the placement.")
        .def("load_checkpoint", of_solver<fs::path>([](PlacedSolver& own, const fs::path& path) {
                 return own.load_checkpoint(path.string());
             }),
             nb::arg("path"),
             "Continues from a checkpoint of a Solver or a PlacedSolver, and returns its extra "
             "numbers.");
}

void bind(nb::module_& module) {
    bind_records(module);
    NetClass net(module, "PlacedNet",
                 "A network on several devices; dlprim.PlacedNet is what programs use.");
    net.def("__init__", make_net, nb::arg("devices"), nb::arg("text"), nb::arg("is_path"),
            nb::arg("options"), nb::arg("place"), nb::arg("memory_limits"),
            nb::arg("solver").none(),
            nb::sig("def __init__(self, devices: dict[str, Context], text: str, is_path: bool, "
                    "options: dict[str, typing.Any], place: str, memory_limits: dict[str, "
                    "int], solver: dict[str, typing.Any] | None) -> None"),
            "dlprim.PlacedNet says what the options are.");
    bind_facts(net);
    bind_values(net);
    bind_runs(net);
    bind_solver_class(module);
}

}  // namespace
}  // namespace placed

void bind_placed(nb::module_& module) {
    placed::bind(module);
}

}  // namespace dlprim::python
