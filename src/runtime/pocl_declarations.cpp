// SPDX-License-Identifier: MIT
// PoclDeclarations: finds PoCL's header, divides it into declarations and directives, and writes
// those that a program needs, in the header's order and under the header's conditions.
#include "runtime/pocl_declarations.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <link.h>

namespace dlprim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view blanks = " \t";
constexpr std::string_view guard = "_OPENCL_H_";

/// Removes the first word from the text and returns it, or an empty text if there is none. Comments
/// have no words.
std::string_view take_word(std::string_view& text) {
    std::size_t at = 0;
    while (at < text.size() && !ascii::is_word(text[at])) {
        const bool line = text.substr(at, 2) == "//", block = text.substr(at, 2) == "/*";
        if (line || block) at = text.find(line ? "\n" : "*/", at + 2);
        at += at < text.size() ? 1 : 0;
        at = std::min(at, text.size());
    }
    text.remove_prefix(at);
    const auto end = std::find_if_not(text.begin(), text.end(), ascii::is_word);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(word.size());
    return word;
}

/// The word before the first parenthesis that does not belong to an attribute.
std::string_view declared_function(std::string_view text) {
    for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
        const std::size_t next = text.find_first_not_of(blanks);
        if (next != std::string_view::npos && text[next] == '(' && word != "__attribute__")
            return word;
    }
    return {};
}

/// Whether kernels may join the name of a type and a width. Other functions have one name for all.
bool may_be_joined(std::string_view name) {
    return name.starts_with("convert_") || name.starts_with("vload") || name.starts_with("vstore");
}

/// Whether the name can be divided into words of the text, such as convert_, float and 8.
bool is_joined(std::string_view name, const std::unordered_set<std::string_view>& words) {
    if (name.empty()) return true;
    for (std::size_t size = 1; size <= name.size(); ++size)
        if (words.contains(name.substr(0, size)) && is_joined(name.substr(size), words))
            return true;
    return false;
}

// Called by dl_iterate_phdr for each loaded file: collects the paths of PoCL's library.
int add_pocl(dl_phdr_info* info, std::size_t, void* data) {
    const fs::path path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (path.filename().string().starts_with("libpocl.so"))
        static_cast<std::vector<fs::path>*>(data)->push_back(path.parent_path());
    return 0;
}

/// The text of the header of the one PoCL in this process, or an empty one.
std::string header_of_process() {
    std::vector<fs::path> folders;
    ::dl_iterate_phdr(add_pocl, &folders);
    if (folders.size() != 1) return {};
    // PoCL finds its files from its library's folder, which may be lib or lib/x86_64-linux-gnu.
    for (const char* up : {"..", "../.."}) {
        const fs::path file = folders[0] / up / "share/pocl/include/opencl-c.h";
        std::error_code code;
        if (!fs::is_regular_file(file, code)) continue;
        try {
            return read_file(file);
        } catch (const Error&) {
            return {};  // the usual way needs no permission of ours
        }
    }
    return {};
}

}  // namespace

const PoclDeclarations* PoclDeclarations::of_process() {
    static const PoclDeclarations found(header_of_process());
    return found.read() ? &found : nullptr;
}

PoclDeclarations::PoclDeclarations(std::string header) : header_(std::move(header)) {
    const std::string_view text = header_;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t first = text.find_first_not_of(blanks, begin);
        if (first == std::string_view::npos) break;
        const bool directive = text[first] == '#';
        const bool block = text.substr(first, 2) == "/*";
        const bool nothing = text[first] == '\n' || text.substr(first, 2) == "//";
        // What may have several lines ends with the line on which this is, or with the text.
        std::size_t end = directive || nothing ? first : text.find(block ? "*/" : ";", first);
        end = std::min(text.find('\n', end), text.size());
        while (directive && end < text.size() && text[end - 1] == '\\')
            end = std::min(text.find('\n', end + 1), text.size());
        end = std::min(end + 1, text.size());
        const std::string_view piece = text.substr(first, end - first);
        if (directive)
            add_directive(piece);
        else if (!block && !nothing)
            add_declaration(piece);
        begin = end;
    }
    read_ = remove_guard();
}

void PoclDeclarations::add_directive(std::string_view text) {
    std::string_view rest = text;
    const std::string_view word = take_word(rest);
    if (word == "include") return;  // opencl-c-base.h, which PoCL reads before
    Kind kind = Kind::other;
    if (word.starts_with("if")) kind = Kind::opens;
    if (word.starts_with("el")) kind = Kind::branches;
    if (word == "endif") kind = Kind::closes;
    pieces_.push_back({kind, text, 0});
}

void PoclDeclarations::add_declaration(std::string_view text) {
    const std::string_view name = declared_function(text);
    if (name.empty()) return pieces_.push_back({Kind::other, text, 0});
    const auto number = static_cast<std::uint32_t>(functions_.size());
    pieces_.push_back({Kind::declares, text, functions_.emplace(name, number).first->second});
}

/// Removes the header's guard. Returns whether there is one around everything.
bool PoclDeclarations::remove_guard() {
    const auto names_guard = [&](std::size_t i, Kind kind) {
        return i < pieces_.size() && pieces_[i].kind == kind &&
               pieces_[i].text.find(guard) != std::string_view::npos;
    };
    if (!names_guard(0, Kind::opens) || !names_guard(1, Kind::other)) return false;
    int depth = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        depth += pieces_[i].kind == Kind::opens ? 1 : pieces_[i].kind == Kind::closes ? -1 : 0;
        const bool last = i + 1 == pieces_.size();
        if ((depth == 0) != last || (depth == 1 && pieces_[i].kind == Kind::branches)) return false;
    }
    pieces_.pop_back();
    pieces_.erase(pieces_.begin(), pieces_.begin() + 2);
    return true;
}

ProgramSource PoclDeclarations::in_front_of(const ProgramSource& source) const {
    return {source.name, text_of(wanted_by(source)) + source.source, source.options + option};
}

std::vector<bool> PoclDeclarations::wanted_by(const ProgramSource& source) const {
    Words words;
    for (std::string_view text :
         {std::string_view(source.source), std::string_view(source.options)})
        for (std::string_view word = take_word(text); !word.empty(); word = take_word(text))
            words.insert(word);
    std::vector<bool> wanted(functions_.size());
    for (const std::string_view word : words)
        if (const auto found = functions_.find(word); found != functions_.end())
            wanted[found->second] = true;
    if (source.source.find("##") == std::string::npos) return wanted;
    for (const auto& [name, number] : functions_)
        if (may_be_joined(name) && is_joined(name, words)) wanted[number] = true;
    return wanted;
}

/// A condition is written when something under it is.
std::string PoclDeclarations::text_of(const std::vector<bool>& wanted) const {
    struct Condition {
        std::string lines;  ///< that are not written yet
        bool written = false;
    };
    std::string text;
    std::vector<Condition> open;
    for (const Piece& piece : pieces_) {
        if (piece.kind == Kind::opens) open.emplace_back();
        if (piece.kind == Kind::opens || (piece.kind == Kind::branches && !open.back().written)) {
            open.back().lines += piece.text;
            continue;
        }
        const bool closes = piece.kind == Kind::closes;
        if (closes || piece.kind == Kind::branches) {
            if (open.back().written) text += piece.text;
            if (closes) open.pop_back();
            continue;
        }
        if (piece.kind == Kind::declares && !wanted[piece.function]) continue;
        for (Condition& condition : open) {
            text += std::exchange(condition.lines, {});
            condition.written = true;
        }
        text += piece.text;
    }
    return text;
}

}  // namespace dlprim
