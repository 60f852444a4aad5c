// SPDX-License-Identifier: MIT
// Locales that a program may set. They are made here, so that none has to be installed.
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

#include <unistd.h>

namespace dlprim::testing {

/// Writes numbers with groups: 1234567.5 as "1,234,567.5" or "1.234.567,5".
class Grouped : public std::numpunct<char> {
  public:
    Grouped(char separator, char point) : separator_(separator), point_(point) {}

  protected:
    char do_thousands_sep() const override { return separator_; }
    char do_decimal_point() const override { return point_; }
    std::string do_grouping() const override { return "\3"; }

  private:
    char separator_, point_;
};

/// The name of a C locale with a comma as decimal point: the German one, either installed or made
/// by localedef in a folder that is removed with the object. Empty if there is neither.
class GermanCLocale {
  public:
    GermanCLocale() {
        if (try_name("de_DE.UTF-8")) return;
        if (!std::filesystem::exists("/usr/share/i18n/locales/de_DE")) return;
        folder_ = std::filesystem::temp_directory_path() /
                  ("dlprim_locale_" + std::to_string(::getpid()));
        std::filesystem::create_directories(folder_);
        const std::string command = "localedef --no-archive -i de_DE -f UTF-8 '" +
                                    (folder_ / "de_DE.UTF-8").string() + "' >/dev/null 2>&1";
        if (std::system(command.c_str()) < 0) return;
        setenv("LOCPATH", folder_.c_str(), 1);
        try_name("de_DE.UTF-8");
    }
    ~GermanCLocale() {
        std::error_code code;
        if (!folder_.empty()) std::filesystem::remove_all(folder_, code);
    }
    GermanCLocale(const GermanCLocale&) = delete;
    GermanCLocale& operator=(const GermanCLocale&) = delete;
    const std::string& name() const { return name_; }

  private:
    bool try_name(const char* name) {
        const std::string before = std::setlocale(LC_ALL, nullptr);
        if (std::setlocale(LC_ALL, name) == nullptr) return false;
        const bool comma = std::string(std::localeconv()->decimal_point) == ",";
        std::setlocale(LC_ALL, before.c_str());
        if (comma) name_ = name;
        return comma;
    }

    std::filesystem::path folder_;
    std::string name_;
};

/// Sets a locale for the process: "classic", "comma groups" (as in English, for C++'s streams),
/// "point groups" (as in German, for C++'s streams) or "setlocale" (German, for C's functions).
/// Returns false if the machine lacks it.
inline bool set_locale(const std::string& which) {
    std::locale::global(std::locale::classic());  // sets C's locale too
    const auto grouped = [](char separator, char point) {
        // The locale owns the facet.
        std::locale::global(std::locale(std::locale::classic(), new Grouped(separator, point)));
    };
    if (which == "comma groups") grouped(',', '.');
    if (which == "point groups") grouped('.', ',');
    if (which != "setlocale") return true;
    static const GermanCLocale german;
    return !german.name().empty() && std::setlocale(LC_ALL, german.name().c_str()) != nullptr;
}

}  // namespace dlprim::testing
