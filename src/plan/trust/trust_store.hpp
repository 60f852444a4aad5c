// SPDX-License-Identifier: MIT
// TrustStore: what checks of engines have found on a device, in memory and in the cache folder.
//
// A file is cache_dir()/trust/<hash of the device>.txt, to which each process appends lines:
//     right KEY ENGINE
//     wrong KEY ENGINE: WHY
//     unknown KEY ENGINE: WHY
// KEY is a hash of the engine, its programs and the kind of problem. Lines that do not have this
// form are ignored. DLPRIM_CACHE=0 turns the files off. Lines of the same file in the folder of
// shipped programs (runtime/shipped_programs.hpp) come before them.
#pragma once

#include "runtime/context_impl.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// What a check has found. `why` is empty if the engine is right.
struct Trust {
    enum class Kind { right, wrong, unknown };  ///< as EngineCheck::Outcome
    Kind kind = Kind::right;
    std::string engine, why;
};

class TrustStore {
  public:
    /// The store of the context's device and driver, and of this version of the library. It lives
    /// as long as the process. Any thread may use it.
    static TrustStore& of(ContextImpl& context);

    std::optional<Trust> find(const std::string& key);
    /// Adds what a check has found, also to the file. If that cannot be written, a line is logged
    /// and only this process knows it.
    void add(const std::string& key, const Trust& trust);
    /// Says that a check covers another key, too, as long as the process lives.
    void remember(const std::string& key, const Trust& trust);
    /// All that checks have found.
    std::vector<Trust> all();
    /// Appends all of it to the file of this device in a folder of shipped programs
    /// (runtime/shipped_programs.hpp). Throws Error(io).
    void write(const std::filesystem::path& folder);

  private:
    void load();
    void load_from(const std::filesystem::path& file);
    void parse(std::string_view line);

    std::mutex mutex_;
    std::filesystem::path name_;  ///< trust/<hash of the device>.txt
    std::optional<std::filesystem::path> file_;
    std::map<std::string, Trust> known_, remembered_;
    bool loaded_ = false;
};

}  // namespace dlprim
