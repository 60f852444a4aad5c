// SPDX-License-Identifier: MIT
// Child; see child.hpp.
#include "doctor/child.hpp"

#include "doctor/printable.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace dlprim::doctor {

namespace {

/// Where the probe reads questions and writes answers. Drivers print to standard output.
constexpr int question_descriptor = 3, answer_descriptor = 4;

/// Becomes the program, whose output goes to `printed`.
void become(const std::string& program, int printed, int questions, int answers) {
    tools::leave_no_core();
    std::signal(SIGPIPE, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    // First out of the way of the numbers that they get.
    const int in = fcntl(questions, F_DUPFD, 10), out = fcntl(answers, F_DUPFD, 10);
    dup2(nothing, STDIN_FILENO);
    dup2(printed >= 0 ? printed : nothing, STDOUT_FILENO);
    dup2(printed >= 0 ? printed : nothing, STDERR_FILENO);
    dup2(in, question_descriptor);
    dup2(out, answer_descriptor);
    close(in);
    close(out);
    execl(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
    tools::write_all(STDERR_FILENO, program + ": " + std::strerror(errno) + "\n");
    _exit(127);
}

/// The loader's error, or "+".
std::string load(const std::string& library) {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "+";
    const char* const why = dlerror();
    std::string text = why == nullptr ? "it does not load" : why;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

Child::Child(const std::string& program)
    : printed_(memfd_create("dlprim_doctor", MFD_CLOEXEC)),
      process_([program, printed = printed_](
                   int questions, int answers) { become(program, printed, questions, answers); },
               "the driver's process") {}

Child::~Child() {
    if (printed_ >= 0) close(printed_);
}

std::string Child::last_words() const {
    constexpr off_t most = 500;
    const off_t end = printed_ < 0 ? 0 : lseek(printed_, 0, SEEK_END);
    std::string text(static_cast<std::size_t>(std::clamp<off_t>(end, 0, most)), '\0');
    const ssize_t got =
        text.empty() ? 0
                     : pread(printed_, text.data(), text.size(), std::max<off_t>(0, end - most));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    text = printable(text);
    text.erase(0, text.find_first_not_of(' '));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (ftruncate(printed_, 0) == 0) lseek(printed_, 0, SEEK_SET);  // for the next process
    return text;
}

Json Child::ask(const Json& question, double seconds) {
    const auto line = process_.ask(question.dump(), seconds);
    if (line.given) {
        Json answer = Json::parse(line.text, nullptr, false);
        if (answer.is_object()) return answer;
    }
    Json lost{{"error", line.given ? "the driver's process answers nonsense" : line.text},
              {"crashed", true}};
    const std::string words = last_words();
    if (line.late)
        lost["late"] = true;
    else if (!words.empty())
        lost["error"] = lost["error"].get<std::string>() + "; it said last: " + words;
    return lost;
}

std::string why_not_loaded(const std::string& library) {
    tools::LineProcess loader(
        [](int questions, int answers) {
            tools::leave_no_core();
            const int nothing = open("/dev/null", O_RDWR);
            dup2(nothing, STDOUT_FILENO);
            dup2(nothing, STDERR_FILENO);
            tools::answer_lines(questions, answers, load);
        },
        "the process that loads it");
    const tools::LineProcess::Answer answer = loader.ask(library, 20);
    if (answer.text == "+") return {};
    return answer.text;
}

}  // namespace dlprim::doctor
