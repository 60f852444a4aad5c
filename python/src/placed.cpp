// SPDX-License-Identifier: MIT
// PlacedNet: include/dlprim/placed_net.hpp for Python. The class of the package derives from this
// one (python/dlprim/placed.py).
#include "net_options.hpp"
#include "owned.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::python {
namespace placed {
namespace {

/// Holds a PlacedNet.
class OwnedNet : public Owned<Net> {
  public:
    using Owned<Net>::Owned;
};

/// Makes a method of a member function of PlacedNet. The method holds the locks.
template <typename Result>
auto of_placed(Result (PlacedNet::*call)() const) {
    return [call](const OwnedNet& self) -> Result {
        const ContextLock lock(self.contexts());
        return (static_cast<const PlacedNet&>(*self).*call)();
    };
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

using NetClass = nb::class_<OwnedNet, Owned<Net>>;

void bind_facts(NetClass& net) {
    net.def_prop_ro("device_names", of_placed(&PlacedNet::device_names),
                    "Names that are bound, and the host's if it was added.")
        .def("parts", of_placed(&PlacedNet::parts),
             "PlacedParts in the order in which forward runs them.")
        .def("moves", of_placed(&PlacedNet::moves),
             "PlacedMoves: what moves in each forward and backward.")
        .def(
            "planned_peak_bytes",
            [](const OwnedNet& self) {
                const ContextLock lock(self.contexts());
                return static_cast<PlacedNet&>(*self).planned_peak_bytes();
            },
            "Peak memory of each device in bytes, by name.");
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
}

}  // namespace
}  // namespace placed

void bind_placed(nb::module_& module) {
    placed::bind(module);
}

}  // namespace dlprim::python
