// SPDX-License-Identifier: MIT
// dlprim.set_cache_directory, set_tuning_file and set_threads: what environment variables set, for
// programs that decide it themselves.
#include "bind.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>

namespace dlprim::python {

void bind_settings(nb::module_& module) {
    using Path = std::filesystem::path;
    module.def(
        "set_cache_directory",
        [](const std::optional<Path>& path) { set_cache_directory(path ? path->string() : ""); },
        nb::arg("path").none(),
        R"(Keep compiled kernels and the user's tuning database in this folder, which is made when it is
needed; None: on no disk at all. In place of DLPRIM_CACHE_DIR and DLPRIM_CACHE.

Call it before the first Context. Raises InvalidArgumentError (a ValueError) where another folder is
in use already.)");
    module.def(
        "set_tuning_file", [](const Path& path) { set_tuning_file(path.string()); },
        nb::arg("path"),
        R"(Keep the user's tuning database in this file, which need not exist. In place of DLPRIM_TUNING.

Call it before the first Context. Raises InvalidArgumentError (a ValueError) where another file is in
use already, or for an empty path.)");
    module.def("set_threads", &set_threads, nb::arg("count"),
               R"(Use so many threads, from 1 to 1024, for the host device, and at most so many to
compile kernels. In place of DLPRIM_THREADS.

Call it before the first Context. Raises InvalidArgumentError (a ValueError) for a number out of this
range, or where another is in use already.)");
}

}  // namespace dlprim::python
