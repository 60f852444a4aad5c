// SPDX-License-Identifier: MIT
// EngineFailed: thrown by an attempt to plan if an engine cannot be built. The next attempt does
// not use that engine.
#pragma once

#include <dlprim/error.hpp>

#include <string>
#include <utility>

namespace dlprim {

/// An engine applies but cannot be built.
class EngineFailed : public Error {
  public:
    EngineFailed(const Error& error, std::string engine_key)
        : Error(error.kind(), error.what()), key(std::move(engine_key)) {}
    std::string key;  ///< the key to disable it
};

}  // namespace dlprim
