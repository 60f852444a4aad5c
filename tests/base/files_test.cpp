// SPDX-License-Identifier: MIT
// Files written whole or not at all; the log hook.
#include "base/env.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>
#include <dlprim/log.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

using namespace dlprim;
namespace fs = std::filesystem;

TEST_CASE("files are replaced whole") {
    const fs::path folder =
        fs::temp_directory_path() / ("dlprim_files_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const std::string bytes(100000, '\0');
    write_file_atomically(folder / "a", "old");
    write_file_atomically(folder / "a", bytes);
    CHECK(read_file(folder / "a") == bytes);
    CHECK_THROWS_AS(write_file_atomically(folder / "none" / "a", "x"), Error);
    CHECK_THROWS_AS(read_file(folder / "none"), Error);
    CHECK_THROWS_AS(read_file(folder), Error);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++files;
    CHECK(files == 1);
    fs::remove_all(folder);
}

TEST_CASE("the cache folder follows the environment") {
    const auto before = env("DLPRIM_CACHE_DIR");
    ::setenv("DLPRIM_CACHE_DIR", "/somewhere", 1);
    CHECK(cache_dir() == fs::path("/somewhere"));
    ::setenv("DLPRIM_CACHE_DIR", "", 1);
    ::setenv("XDG_CACHE_HOME", "/xdg", 1);
    CHECK(cache_dir() == fs::path("/xdg/dlprim"));
    if (before) ::setenv("DLPRIM_CACHE_DIR", before->c_str(), 1);
}

TEST_CASE("log lines reach the receiver") {
    std::string got;
    set_log([&](LogLevel level, std::string_view line) {
        if (level == LogLevel::warning) got = line;
    });
    log(LogLevel::info, "not this");
    log(LogLevel::warning, "this");
    set_log({});
    log(LogLevel::warning, "nor this");
    CHECK(got == "this");
}
