// SPDX-License-Identifier: MIT
// PlacedNet and PlacedSolver: include/dlprim/placed_net.hpp for Python. The classes of the package
// derive from these ones (python/dlprim/placed.py).
#include "net_classes.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>

namespace dlprim::python {
namespace placed {
namespace {

using OwnedNet = Owned<PlacedNet>;

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
    new (self) OwnedNet(contexts, [&] {
        return std::make_unique<PlacedNet>(
            is_path ? PlacedNet::from_json_file(devices, text, options, placement)
                    : PlacedNet::from_json(devices, text, options, placement));
    });
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
    net.def_prop_ro("device_names", locked(&PlacedNet::device_names),
                    "Names that are bound, and the host's if it was added.")
        .def("parts", locked(&PlacedNet::parts),
             "PlacedParts in the order in which forward runs them.")
        .def("moves", locked(&PlacedNet::moves),
             "PlacedMoves: what moves in each forward and backward.")
        .def(
            "planned_peak_bytes",
            [](const OwnedNet& self) {
                return locked(&PlacedNet::planned_peak_bytes)(self, nullptr);
            },
            "Peak memory of each device in bytes, by name.")
        .def("notes", locked(&PlacedNet::notes),
             "Remarks on the placement, and of the planner. Plans and compiles.")
        .def("input", locked(&PlacedNet::input), nb::arg("name"),
             "An input's own Tensor, on the device of its first reader. Raises NotFoundError.")
        .def("output", locked(&PlacedNet::output), nb::arg("name"),
             "An output's own Tensor, on the device that makes it. Raises NotFoundError.")
        .def("param", locked(&PlacedNet::param), nb::arg("name"),
             "A parameter's own Tensor. Call params_changed() after writing to it. Raises "
             "NotFoundError.")
        .def("gradient", locked(&PlacedNet::gradient), nb::arg("name"),
             "The gradient of a parameter or, with input_gradients, of an input. Raises "
             "NotFoundError.");
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
    bind_any_net<PlacedNet>(net);
    bind_facts(net);
    nb::class_<Owned<PlacedSolver>> solver(module, "PlacedSolver",
                                           "Trains a PlacedNet. Programs use dlprim.PlacedSolver.");
    bind_any_solver<PlacedSolver, PlacedNet>(
        solver, "def __init__(self, net: PlacedNet, options: dict[str, typing.Any]) -> None");
    solver.def("output_of_batch", locked(&PlacedSolver::output_of_batch), nb::arg("name"),
               "The Tensor that holds this output of whole batches after each later step: with "
               "shards the rows of all of them. Raises NotFoundError, InvalidArgumentError.");
}

}  // namespace
}  // namespace placed

void bind_placed(nb::module_& module) {
    placed::bind(module);
}

}  // namespace dlprim::python
