// SPDX-License-Identifier: MIT
// Settings of the process, which take the place of environment variables.
#include <dlprim/settings.hpp>

#include "base/env.hpp"
#include "base/text.hpp"

namespace dlprim {

void set_cache_directory(const std::string& path) {
    std::map<std::string, std::string> values{{"DLPRIM_CACHE", path.empty() ? "0" : "1"}};
    if (!path.empty()) values["DLPRIM_CACHE_DIR"] = path;
    override_env(values, "the cache folder");
}

void set_tuning_file(const std::string& path) {
    require(!path.empty(), "the path of the tuning database must not be empty");
    override_env({{"DLPRIM_TUNING", path}}, "the tuning database");
}

void set_threads(int count) {
    require(count >= 1 && count <= 1024, "the number of threads must be from 1 to 1024, not ",
            count);
    override_env({{"DLPRIM_THREADS", cat(count)}}, "the number of threads");
}

}  // namespace dlprim
