// SPDX-License-Identifier: MIT
// The search starts from the file that holds this code, which is the shared library or a program
// linked with the static one. CMake defines the paths from their folders to the executable's.
#include "runtime/compile_program.hpp"

#include "base/env.hpp"

#include <cstdint>
#include <string>

#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlprim {
namespace {

namespace fs = std::filesystem;

struct Search {
    std::uintptr_t address;
    std::string file;
};

// Called by dl_iterate_phdr for each loaded file. Returning 1 ends the search.
int holds_address(dl_phdr_info* info, std::size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
        if (part.p_type != PT_LOAD || search.address < begin ||
            search.address >= begin + part.p_memsz)
            continue;
        // The main program has an empty name here.
        const bool named = info->dlpi_name != nullptr && *info->dlpi_name != '\0';
        search.file = named ? info->dlpi_name : "/proc/self/exe";
        return 1;
    }
    return 0;
}

bool is_executable(const fs::path& file) {
    std::error_code code;
    return fs::is_regular_file(file, code) && ::access(file.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<fs::path> installed_path(std::initializer_list<const char*> folders,
                                       const char* name) {
    Search search{reinterpret_cast<std::uintptr_t>(&installed_path), {}};
    ::dl_iterate_phdr(holds_address, &search);
    std::error_code code;
    const fs::path self = fs::canonical(search.file, code);
    struct stat status {};
    if (code || ::stat(self.c_str(), &status) != 0) return std::nullopt;
    for (const char* folder : folders) {
        // If `folder` is absolute, it replaces the path in front of it.
        const fs::path file = fs::canonical(self.parent_path() / folder / name, code);
        // Above a program in /tmp/build, for example, any user could have put /tmp/libexec.
        if (!code && file.filename() == name && is_protected(file, status.st_uid)) return file;
    }
    return std::nullopt;
}

bool is_protected(const fs::path& file, uid_t owner) {
    fs::path place = file;
    for (int level = 0; level < 3; ++level, place = place.parent_path()) {
        struct stat status {};
        if (::lstat(place.c_str(), &status) != 0 || (status.st_mode & S_IWOTH) != 0) return false;
        if (status.st_uid != 0 && status.st_uid != ::geteuid() && status.st_uid != owner)
            return false;
    }
    return true;
}

std::optional<fs::path> compile_program() {
    // The user of a setuid program could choose what runs, by a variable or by a hard link.
    if (::getauxval(AT_SECURE) != 0) return std::nullopt;
    if (const auto given = env("DLPRIM_COMPILE_PROGRAM")) {
        if (is_executable(*given)) return fs::path(*given);
        return std::nullopt;
    }
    static const std::optional<fs::path> installed =
        installed_path({DLPRIM_LIBEXEC_FROM_LIB, DLPRIM_LIBEXEC_FROM_BIN}, "dlprim_compile");
    if (installed && !is_executable(*installed)) return std::nullopt;
    return installed;
}

}  // namespace dlprim
