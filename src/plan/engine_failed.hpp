// SPDX-License-Identifier: MIT
// EngineFailed: thrown by an attempt to plan if an engine cannot be built. The next attempt does
// not use that engine. EnginesDistrusted: the same for engines whose results are wrong. NoEngine:
// the device has no engine for a node.
#pragma once

#include "plan/trust/trust.hpp"

#include <dlprim/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// An engine applies but cannot be built.
class EngineFailed : public Error {
  public:
    EngineFailed(const Error& error, std::string engine_key)
        : Error(error.kind(), error.what()), key(std::move(engine_key)) {}
    std::string key;  ///< the key to disable it
};

/// No engine of the device computes a node.
class NoEngine : public Error {
  public:
    NoEngine(const std::string& what, std::string node_name)
        : Error(ErrorKind::unsupported, what), node(std::move(node_name)) {}
    std::string node;
};

/// Checks have found engines wrong (plan/trust/trust.hpp). The next attempt uses none of them.
class EnginesDistrusted : public Error {
  public:
    EnginesDistrusted(const std::string& what, std::vector<DistrustedEngine> all)
        : Error(ErrorKind::device, what), engines(std::move(all)) {}
    std::vector<DistrustedEngine> engines;
};

}  // namespace dlprim
