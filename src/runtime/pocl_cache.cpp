// SPDX-License-Identifier: MIT
// PoCL's cache folder: where it is, and whether it is writable.
#include "runtime/pocl_cache.hpp"

#include "base/env.hpp"
#include "base/file_size_signal.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace dlprim {
namespace {

namespace fs = std::filesystem;

// Tries to write a small file in `folder`. Returns 0 or the error number. The file has 4 KiB,
// because a full disk still accepts an empty file.
int try_writing(const fs::path& folder) {
    const NoFileSizeSignal quiet;
    std::string name = (folder / "dlprim-XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) return errno;
    const std::vector<char> block(4096, ' ');
    const ssize_t written = ::write(descriptor, block.data(), block.size());
    int error = 0;
    if (written < 0)
        error = errno;
    else if (static_cast<std::size_t>(written) < block.size())
        error = ENOSPC;
    ::close(descriptor);
    ::unlink(name.c_str());
    return error;
}

}  // namespace

bool is_pocl(std::string_view platform_version) {
    return platform_version.find("PoCL") != std::string_view::npos ||
           platform_version.find("pocl") != std::string_view::npos;
}

bool pocl_keeps_programs() {
    return env("POCL_KERNEL_CACHE") != "0";
}

fs::path pocl_cache_folder() {
    if (const auto folder = env("POCL_CACHE_DIR")) return *folder;
    fs::path base = "/tmp";
    if (const auto folder = env("XDG_CACHE_HOME"))
        base = *folder;
    else if (const auto home = env("HOME"))
        base = fs::path(*home) / ".cache";
    // Newer versions use a folder of another name when the kernel cache is off.
    std::error_code ignored;
    fs::path uncached = base / "pocl" / "uncached";
    if (!pocl_keeps_programs() && fs::exists(uncached, ignored)) return uncached;
    return base / "pocl" / "kcache";
}

std::string pocl_cache_trouble() {
    const fs::path folder = pocl_cache_folder();
    const auto sentence = [&](const char* what, const std::string& why) {
        return cat("PoCL's cache folder '", folder.string(), "' cannot be ", what, ": ", why,
                   "; set POCL_CACHE_DIR (or XDG_CACHE_HOME) to a folder that can be written");
    };
    std::error_code code;
    fs::create_directories(folder, code);
    if (code) return sentence("made", code.message());
    if (const int error = try_writing(folder)) return sentence("written", std::strerror(error));
    return {};
}

}  // namespace dlprim
