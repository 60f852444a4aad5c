// SPDX-License-Identifier: MIT
// A scope in which numbers are read and written by the C locale. Libraries such as nlohmann/json's
// parser need it.
#pragma once

#include <locale.h>

namespace dlprim {

/// While it lives, the calling thread has the classic locale for numbers, whatever setlocale() has
/// set for the process. Other threads keep theirs.
class ClassicNumbers {
  public:
    ClassicNumbers() {
        static const locale_t classic = newlocale(LC_ALL_MASK, "C", locale_t{});
        if (classic != locale_t{}) before_ = uselocale(classic);
    }
    ~ClassicNumbers() {
        if (before_ != locale_t{}) uselocale(before_);
    }
    ClassicNumbers(const ClassicNumbers&) = delete;
    ClassicNumbers& operator=(const ClassicNumbers&) = delete;

  private:
    locale_t before_ = locale_t{};
};

}  // namespace dlprim
