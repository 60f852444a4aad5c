// SPDX-License-Identifier: MIT
// TrustStore: lines of a text file.
#include "plan/trust/trust_store.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/shipped_programs.hpp"

#include <dlprim/diagnosis.hpp>
#include <dlprim/log.hpp>
#include <dlprim/version.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

namespace dlprim {

namespace {

/// Goes up when checks find something else than before, so that what they have found is not taken
/// for true.
constexpr int revision = 4;
constexpr std::uint64_t most_bytes = 16 << 20;  ///< of a file; a longer one is ignored
constexpr std::size_t key_length = 32;
constexpr std::string_view kinds[] = {"right", "wrong", "unknown"};

/// The first 1000 bytes, with spaces in place of control characters.
std::string one_line(std::string_view text) {
    std::string line(text.substr(0, 1000));
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return line;
}

bool is_key(std::string_view text) {
    return text.size() == key_length &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Appends the bytes by one write, so that lines of several processes do not mix. Returns what
/// prevents that, or nothing.
std::string append(const std::filesystem::path& path, const std::string& bytes) {
    std::error_code code;
    std::filesystem::create_directories(path.parent_path(), code);
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) ==
                                          static_cast<ssize_t>(bytes.size());
    const int error = errno;
    if (file >= 0) ::close(file);
    if (written) return {};
    return cat("checks of engines: '", path.string(),
               "' cannot be written: ", std::strerror(error));
}

std::string line_of(const std::string& key, const Trust& trust) {
    const std::string why = one_line(trust.why);
    return cat(kinds[static_cast<std::size_t>(trust.kind)], ' ', key, ' ', trust.engine,
               why.empty() ? "" : ": ", why, '\n');
}

}  // namespace

TrustStore& TrustStore::of(ContextImpl& context) {
    static std::mutex mutex;
    static auto* const all = new std::map<std::string, std::unique_ptr<TrustStore>>;
    const DeviceInfo& device = context.info();
    const std::string name = cat(device.platform, '\n', device_class(device), '\n', device.driver,
                                 "\n" DLPRIM_VERSION "\n", revision);
    const std::lock_guard lock(mutex);
    auto& store = (*all)[name];
    if (!store) {
        store = std::make_unique<TrustStore>();
        store->name_ = std::filesystem::path("trust") / (hash_hex(name) + ".txt");
        const auto folder = cache_dir();
        if (folder && env("DLPRIM_CACHE").value_or("1") != "0")
            store->file_ = *folder / store->name_;
    }
    return *store;
}

void TrustStore::load() {
    if (loaded_) return;
    loaded_ = true;
    if (!file_) return;
    if (const auto shipped = shipped_programs()) load_from(*shipped / name_);
    load_from(*file_);
}

void TrustStore::load_from(const std::filesystem::path& file) {
    std::error_code code;
    if (!std::filesystem::exists(file, code)) return;
    try {
        for (const std::string& line : split(read_file(file, most_bytes), '\n')) parse(line);
    } catch (const Error& error) {
        log(LogLevel::info, cat("checks of engines: ", error.what()));
    }
}

void TrustStore::parse(std::string_view line) {
    const std::size_t blank = line.find(' ');
    const auto kind = std::find(std::begin(kinds), std::end(kinds), line.substr(0, blank));
    if (blank == std::string_view::npos || kind == std::end(kinds)) return;
    line.remove_prefix(blank + 1);
    if (line.size() < key_length + 2 || line[key_length] != ' ') return;
    const std::string_view key = line.substr(0, key_length);
    line.remove_prefix(key_length + 1);
    const std::size_t colon = line.find(": ");
    Trust trust;
    trust.kind = static_cast<Trust::Kind>(kind - std::begin(kinds));
    trust.engine = line.substr(0, colon);
    if (colon != std::string_view::npos) trust.why = line.substr(colon + 2);
    // A line that was cut short must not make an engine right.
    if (is_key(key) && trust.why.empty() == (trust.kind == Trust::Kind::right))
        known_[std::string(key)] = std::move(trust);
}

std::optional<Trust> TrustStore::find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    load();
    for (const auto* known : {&known_, &remembered_})
        if (const auto found = known->find(key); found != known->end()) return found->second;
    return std::nullopt;
}

void TrustStore::remember(const std::string& key, const Trust& trust) {
    const std::lock_guard lock(mutex_);
    remembered_[key] = trust;
}

void TrustStore::add(const std::string& key, const Trust& trust) {
    const std::lock_guard lock(mutex_);
    load();
    known_[key] = trust;
    if (!file_) return;
    const std::string trouble = append(*file_, line_of(key, trust));
    if (!trouble.empty()) log(LogLevel::info, trouble);
}

void TrustStore::write(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    load();
    std::string lines;
    for (const auto& [key, trust] : known_) lines += line_of(key, trust);
    if (lines.empty()) return;
    const std::string trouble = append(folder / name_, lines);
    if (!trouble.empty()) fail(ErrorKind::io, trouble);
}

std::vector<Trust> TrustStore::all() {
    const std::lock_guard lock(mutex_);
    load();
    std::vector<Trust> found;
    for (const auto& [key, trust] : known_) found.push_back(trust);
    return found;
}

std::vector<EngineTrust> engine_trust(const Context& context) {
    std::vector<EngineTrust> all;
    for (const Trust& trust : TrustStore::of(Access::impl(context)).all())
        all.push_back({static_cast<EngineTrust::Kind>(trust.kind), trust.engine, trust.why});
    return all;
}

}  // namespace dlprim
