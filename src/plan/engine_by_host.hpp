// SPDX-License-Identifier: MIT
// EngineByHost: an engine of the host that computes a node of another device's plan.
//
// It is for nodes whose engines were all found wrong on the device (plan/trust/trust.hpp). In each
// run the host waits for the device, reads the inputs, computes, and writes the outputs. That is
// slow, and right.
#pragma once

#include "engine/engine.hpp"

#include <vector>

namespace dlprim {

/// The host's engines for the problem as engines of an OpenCL device, fastest first by their own
/// estimates. They take plain layouts, compute in fp32 or what operands have, and live as long as
/// the process. Empty if the host cannot compute the problem either. Any thread may call it.
std::vector<const Engine*> engines_by_host(const Problem& problem);

}  // namespace dlprim
