// SPDX-License-Identifier: MIT
// Programs that came with the library, or that its installation has compiled: a folder with files
// of the binary cache (kernels/) and of the checks of engines (trust/), which is only read. They
// are for a class of devices, a driver and a version of the library, as their keys say.
#pragma once

#include <dlprim/context.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace dlprim {

/// The folder that DLPRIM_PROGRAMS names, else share/dlprim-<SOVERSION>/programs of the
/// installation. Its programs run as part of this process. So there is none if others could have
/// written it (runtime/compile_program.hpp), or if this process runs with more rights than its user
/// has and a variable names it.
std::optional<std::filesystem::path> shipped_programs();

/// The name by which caches know a device: that of devices for which a driver compiles the same.
/// PoCL's names of processors have such a class, and then the model, which is left out:
/// "pthread-skylake-avx512" of "pthread-skylake-avx512-AMD EPYC".
std::string device_class(const DeviceInfo& device);

class BinaryCache;
class ContextImpl;

/// Writes the context's compiled programs there, and returns how many there are. Throws Error(io).
std::size_t write_programs_of(ContextImpl& context, const BinaryCache& to);

}  // namespace dlprim
