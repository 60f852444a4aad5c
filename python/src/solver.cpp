// SPDX-License-Identifier: MIT
// Solver: include/dlprim/solver.hpp for Python.
#include "bind.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

namespace dlprim::python {
namespace {

SolverOptions::Kind to_kind(const std::string& name) {
    if (name == "sgd") return SolverOptions::Kind::sgd;
    if (name == "adam") return SolverOptions::Kind::adam;
    if (name == "adamw") return SolverOptions::Kind::adamw;
    throw Error(ErrorKind::invalid_argument,
                "solver '" + name + "' is none of 'sgd', 'adam' and 'adamw'");
}

/// The solver of a net and the lock that both are under.
class PySolver {
  public:
    PySolver(Net& net, const SolverOptions& options)
        : context_(net.context()), solver_(net, options) {}
    const Context& context() const { return context_; }
    Solver& get() { return solver_; }

  private:
    Context context_;
    Solver solver_;
};

}  // namespace

void bind_solver(nb::module_& module) {
    nb::class_<PySolver>(module, "Solver")
        .def("__init__",
             [](PySolver* self, Net& net, const std::string& kind, double learning_rate,
                double momentum) {
                 SolverOptions options;
                 options.kind = to_kind(kind);
                 options.learning_rate = learning_rate;
                 options.momentum = momentum;
                 const ContextLock lock(net.context());
                 new (self) PySolver(net, options);
             },
             nb::arg("net"), nb::arg("kind") = "adam", nb::kw_only(),
             nb::arg("learning_rate") = 1e-3, nb::arg("momentum") = 0.0)
        .def("step", [](PySolver& self) {
            const ContextLock lock(self.context());
            self.get().step();
        });
}

}  // namespace dlprim::python
