// SPDX-License-Identifier: MIT
// Registers Scan and its engines.
#include "ops/scan/engines.hpp"
#include "ops/scan/operator.hpp"

namespace dlprim {

void register_scan(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(scan::make_operator());
    scan::add_host_engine(engines);
    scan::add_reference_engine(engines);
}

}  // namespace dlprim
