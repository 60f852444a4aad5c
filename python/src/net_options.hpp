// SPDX-License-Identifier: MIT
// NetOptions and SolverOptions from keyword arguments.
#pragma once

#include "bind.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::python {

/// Converts a dict whose keys are fields of NetOptions. Throws nb::type_error on another key or a
/// value of a wrong type, and Error(invalid_argument) on a name that does not exist.
NetOptions net_options(nb::handle keywords);
/// The same of SolverOptions, and back.
SolverOptions solver_options(nb::handle keywords);
nb::dict dict_of(const SolverOptions& options);

// These functions set their last argument, or return false if the object has another type.

/// A dict, or pairs of strings.
bool to_pairs(nb::handle object, std::vector<std::pair<std::string, std::string>>& pairs);
bool to_precisions(nb::handle object, std::vector<std::pair<std::string, Precision>>& precisions);
/// A dict of names and shapes.
bool to_shapes(nb::handle object, std::map<std::string, Shape>& shapes);

}  // namespace dlprim::python
