// SPDX-License-Identifier: MIT
// What a program sets takes the place of the environment until it is in use. A program of its own:
// a setting is read once a process.
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <cstdlib>
#include <filesystem>

#include <unistd.h>

using namespace dlprim;

TEST_CASE("settings go before the environment, until they are in use") {
    namespace fs = std::filesystem;
    const fs::path folder =
        fs::temp_directory_path() / ("dlprim_settings_" + std::to_string(::getpid()));
    ::setenv("DLPRIM_CACHE", "0", 1);
    ::setenv("DLPRIM_CACHE_DIR", "/proc/nowhere", 1);
    ::setenv("DLPRIM_THREADS", "1", 1);
    CHECK_THROWS_AS(set_threads(0), Error);
    CHECK_THROWS_AS(set_threads(1025), Error);
    CHECK_THROWS_AS(set_tuning_file(""), Error);
    set_cache_directory("elsewhere");
    set_cache_directory(folder.string());  // nothing has read it yet
    set_threads(3);

    CHECK(Context("cpu").traits().compute_units == 3);
    CHECK_THROWS_WITH(set_threads(2), ContainsSubstring("before the first Context"));
    set_threads(3);  // changes nothing

    for (const DeviceInfo& info : Context::devices()) {
        if (info.kind == DeviceKind::host) continue;
        const Context context(info.id);
        ops::relu(Tensor(context, {7}, std::vector<float>(7, 1))).to_floats();
        CHECK(fs::exists(folder));
        CHECK_THROWS_WITH(set_cache_directory(""), ContainsSubstring("the cache folder"));
    }
    fs::remove_all(folder);
}
