// SPDX-License-Identifier: MIT
// EngineFailed: what a try of a plan throws where an engine cannot be built; the next does without.
#pragma once

#include <dlprim/error.hpp>

#include <string>
#include <utility>

namespace dlprim {

/// An engine that applies, but cannot be built.
class EngineFailed : public Error {
  public:
    EngineFailed(const Error& error, std::string engine_key)
        : Error(error.kind(), error.what()), key(std::move(engine_key)) {}
    std::string key;  ///< to disable it by
};

}  // namespace dlprim
