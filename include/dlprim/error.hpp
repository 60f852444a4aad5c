// SPDX-License-Identifier: MIT
// Error: the one exception type that the library throws.
//
// what() is a single sentence that says what failed, on what, and what would help, e.g.
//   [Convolution2D 'layer1.0.conv1'] input has 32 channels, weight wants 64
// The library never prints and never ends the process.
#pragma once

#include <dlprim/namespace.hpp>

#include <stdexcept>
#include <string>

namespace dlprim {

enum class ErrorKind {
    invalid_argument,  ///< a shape, option or call that makes no sense
    not_found,         ///< a device, file, tensor, parameter, engine that is not there
    out_of_memory,     ///< host or device memory does not suffice
    device,            ///< the OpenCL implementation reported an error
    build,             ///< a kernel does not compile; what() names a file with the compiler's log
    io,                ///< reading or writing a file failed
    format,            ///< a file does not hold what its format asks for
    unsupported,       ///< valid, but not on this device or in this build
    numeric,           ///< NaN or infinity where a number is needed
};

class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

}  // namespace dlprim
