// SPDX-License-Identifier: MIT
// kernel_source(): the OpenCL files of kernels/, with their includes inserted.
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/embedded_kernels.hpp"
#include "runtime/program.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace dlprim {
namespace {

std::string file_text(const std::string& path) {
    if (const auto folder = env("DLPRIM_KERNELS_DIR")) {
        const std::filesystem::path file = std::filesystem::path(*folder) / path;
        if (std::filesystem::exists(file)) return read_file(file);
    }
    std::vector<std::string> paths;
    for (const EmbeddedKernel* entry = embedded_kernels; entry->path != nullptr; ++entry) {
        if (path == entry->path) return entry->text;
        paths.emplace_back(entry->path);
    }
    fail(ErrorKind::not_found, "there is no kernel source '", path, "'", did_you_mean(path, paths));
}

// The file of an `#include "file"` line, or empty.
std::string included(std::string_view line) {
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos || line[start] != '#') return {};
    const std::size_t word = line.find_first_not_of(" \t", start + 1);
    if (word == std::string_view::npos || line.compare(word, 7, "include") != 0) return {};
    const std::size_t open = line.find('"', word);
    const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
    if (close == std::string_view::npos) return {};
    return std::string(line.substr(open + 1, close - open - 1));
}

void append(const std::string& path, std::vector<std::string>& seen, std::string& out) {
    if (std::find(seen.begin(), seen.end(), path) != seen.end()) return;
    seen.push_back(path);
    for (const std::string& line : split(file_text(path), '\n')) {
        const std::string file = included(line);
        if (file.empty()) {
            out += line;
            out += '\n';
        } else {
            append(file, seen, out);
        }
    }
}

std::string whole_text(std::string_view path) {
    std::vector<std::string> seen;
    std::string out;
    append(std::string(path), seen, out);
    return out;
}

}  // namespace

std::string kernel_source(std::string_view path) {
    // Each launch that is built asks for its text. Files of a folder may change meanwhile.
    if (env("DLPRIM_KERNELS_DIR")) return whole_text(path);
    static std::mutex mutex;
    static std::map<std::string, std::string, std::less<>> texts;
    const std::lock_guard lock(mutex);
    const auto known = texts.find(path);
    if (known != texts.end()) return known->second;
    return texts.emplace(path, whole_text(path)).first->second;
}

}  // namespace dlprim
