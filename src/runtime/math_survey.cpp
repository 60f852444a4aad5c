// SPDX-License-Identifier: MIT
// MathSurvey: finds the functions that a program calls, tries those that are new, and keeps in the
// binary cache what came of it, under the device's key.
#include "runtime/math_survey.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/build_again.hpp"

#include <dlprim/log.hpp>
#include <dlprim/version.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>

namespace dlprim {
namespace {

constexpr const char* probe_name = "probe/functions.cl";

/// Whether the user wants all functions to be ours, or the driver's. Otherwise the survey decides.
std::optional<bool> forced_ours() {
    const auto wanted = env("DLPRIM_FUNCTIONS");
    if (!wanted || wanted->empty()) return std::nullopt;
    require(*wanted == "own" || *wanted == "driver",
            "DLPRIM_FUNCTIONS must be 'own' or 'driver', not '", *wanted, "'");
    return *wanted == "own";
}

/// Adds the functions of the table that the text calls.
void add_called(std::string_view text, std::set<const MathFunction*>& called) {
    for (std::size_t at = 0; at < text.size();) {
        if (!ascii::is_word(text[at])) {
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < text.size() && ascii::is_word(text[at])) ++at;
        const std::string_view word = text.substr(begin, at - begin);
        while (at < text.size() && text[at] == ' ') ++at;
        if (at == text.size() || text[at] != '(') continue;
        if (const MathFunction* found = find_math_function(word)) called.insert(found);
    }
}

bool has(std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
}

bool supports_doubles(cl_device_id device) {
    cl_device_fp_config config = 0;
    return clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(config), &config, nullptr) ==
               CL_SUCCESS &&
           config != 0;
}

/// Kernels of processors are written for vectors of all widths; those of others for single numbers
/// and for four, and their compilers would take a second for a function of 16.
bool has_wide_vectors(const CompileTarget& target) {
    return target.device().kind == DeviceKind::cpu;
}

std::string kernel_name(const MathFunction& function, bool is_double) {
    return cat("try_", function.name, is_double ? "_double" : "_float");
}

/// The line of kernels/probe/functions.cl that makes a kernel.
std::string trial_line(const MathFunction& function, bool is_double, bool ours) {
    return cat(function.arity == 2 ? "TRY_TWO(" : "TRY_ONE(", kernel_name(function, is_double),
               ", ", ours ? "dlprim_" : "", function.name, ", ", is_double ? "double" : "float",
               ")\n");
}

struct Release {
    void operator()(cl_kernel kernel) const { clReleaseKernel(kernel); }
    void operator()(cl_mem memory) const { clReleaseMemObject(memory); }
    void operator()(cl_program program) const { clReleaseProgram(program); }
    void operator()(cl_command_queue queue) const { clReleaseCommandQueue(queue); }
};
template <typename T>
using Held = std::unique_ptr<std::remove_pointer_t<T>, Release>;

Held<cl_mem> make_memory(cl_context context, std::size_t bytes, const void* from) {
    cl_int code = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (from ? CL_MEM_COPY_HOST_PTR : 0);
    Held<cl_mem> memory(clCreateBuffer(context, flags, bytes, const_cast<void*>(from), &code));
    cl_check(code, "memory for a trial of functions");
    return memory;
}

template <typename T>
std::vector<T> run_trial(cl_context context, cl_device_id device, cl_kernel kernel,
                         const MathTrial<T>& trial, std::size_t parts) {
    const std::size_t count = trial.a.size(), one = 1;
    std::vector<T> y(parts * count);
    const Held<cl_mem> memory[] = {make_memory(context, count * sizeof(T), trial.a.data()),
                                   make_memory(context, count * sizeof(T), trial.b.data()),
                                   make_memory(context, y.size() * sizeof(T), nullptr)};
    for (cl_uint i = 0; i < 3; ++i) {
        const cl_mem argument = memory[i].get();
        cl_check(clSetKernelArg(kernel, i, sizeof(cl_mem), &argument), "a trial of functions");
    }
    const cl_int numbers = static_cast<cl_int>(count);
    cl_check(clSetKernelArg(kernel, 3, sizeof(numbers), &numbers), "a trial of functions");
    const Held<cl_command_queue> queue(cl_make_queue(context, device, 0));
    cl_check(
        clEnqueueNDRangeKernel(queue.get(), kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr),
        "a trial of functions");
    cl_check(clEnqueueReadBuffer(queue.get(), memory[2].get(), CL_TRUE, 0, y.size() * sizeof(T),
                                 y.data(), 0, nullptr, nullptr),
             "a trial of functions");
    return y;
}

/// Where the first result is wrong, or nothing.
template <typename T>
std::optional<std::size_t> first_wrong(const MathFunction& function, const MathTrial<T>& trial,
                                       const std::vector<T>& y) {
    for (std::size_t i = 0; i < y.size(); ++i)
        if (!is_right(function, trial, i % trial.a.size(), y[i])) return i;
    return std::nullopt;
}

}  // namespace

MathSurvey::MathSurvey(const CompileTarget& target, cl_context context, cl_device_id device,
                       Build build, bool tries)
    : target_(target),
      context_(context),
      device_(device),
      build_(std::move(build)),
      tries_(tries),
      has_doubles_(supports_doubles(device)),
      forced_(forced_ours()) {}

/// What a program calls.
struct MathSurvey::Calls {
    std::set<const MathFunction*> functions;  ///< and what their texts need
    bool doubles = false;
    std::vector<Use> uses;
};

MathSurvey::Calls MathSurvey::calls_of(const ProgramSource& source) const {
    Calls calls;
    if (source.name == probe_name || forced_ == false) return calls;
    auto& called = calls.functions;
    add_called(source.source, called);
    add_called(source.options, called);
    for (const MathFunction* function : std::set<const MathFunction*>(called))
        if (function->needs != nullptr) called.insert(find_math_function(function->needs));
    calls.doubles = has_doubles_ && (has(source.source, "double") || has(source.options, "double"));
    for (const MathFunction* function : called) {
        calls.uses.emplace_back(function, false);
        if (calls.doubles) calls.uses.emplace_back(function, true);
    }
    return calls;
}

ProgramSource MathSurvey::corrected(const ProgramSource& source) {
    const Calls calls = calls_of(source);
    if (calls.uses.empty()) return source;
    const std::lock_guard lock(mutex_);
    find_out(calls.uses);
    const std::vector<OwnFunction> own = own_of(calls.functions, calls.doubles);
    if (own.empty()) return source;
    return {source.name, cat(own_functions(own, calls.doubles), own_names(own), source.source),
            source.options};
}

bool MathSurvey::knows(const ProgramSource& source) {
    const Calls calls = calls_of(source);
    if (forced_ || calls.uses.empty()) return true;
    const std::lock_guard lock(mutex_);
    const auto unknown = [this](const Use& use) { return is_unknown(use); };
    if (std::none_of(calls.uses.begin(), calls.uses.end(), unknown)) return true;
    load();  // another process may have found it
    return std::none_of(calls.uses.begin(), calls.uses.end(), unknown);
}

bool MathSurvey::is_unknown(const Use& use) const {
    return verdicts_.count(use) == 0 && !(use.second && use.first->ours_for_doubles);
}

/// Those of the functions that are ours, and in front of each what it needs.
std::vector<OwnFunction> MathSurvey::own_of(const std::set<const MathFunction*>& functions,
                                            bool doubles) const {
    std::vector<OwnFunction> own;
    const auto add = [&](const MathFunction* function) {
        const auto same = [&](const OwnFunction& one) { return one.function == function; };
        if (std::any_of(own.begin(), own.end(), same)) return;
        own.push_back({function, is_ours({function, false}), doubles && is_ours({function, true})});
    };
    for (const MathFunction* function : functions) {
        if (!is_ours({function, false}) && !(doubles && is_ours({function, true}))) continue;
        if (function->needs != nullptr) add(find_math_function(function->needs));
        add(function);
    }
    return own;
}

bool MathSurvey::is_ours(const Use& use) const {
    if (forced_) return *forced_;
    if (use.second && use.first->ours_for_doubles) return true;
    const auto found = verdicts_.find(use);
    return found != verdicts_.end() && found->second;
}

/// Tries the functions that are not known, by one program.
void MathSurvey::find_out(const std::vector<Use>& uses) {
    if (forced_) return;
    const auto unknown_use = [this](const Use& use) { return is_unknown(use); };
    if (std::none_of(uses.begin(), uses.end(), unknown_use)) return;
    load();  // another process may have found it
    if (!tries_) return;
    std::vector<Use> unknown;
    std::copy_if(uses.begin(), uses.end(), std::back_inserter(unknown), unknown_use);
    if (unknown.empty()) return;
    try {
        const Held<cl_program> program(trial_program(unknown, false));
        for (const Use& use : unknown)
            verdicts_[use] = use.second ? needs_ours<double>(program.get(), use)
                                        : needs_ours<float>(program.get(), use);
        save();
    } catch (const Error& error) {
        log(LogLevel::info, cat("the functions of device ", target_.device().str(),
                                " are used without a trial: ", error.what()));
        for (const Use& use : unknown) verdicts_.emplace(use, false);
    }
}

/// A program of the driver's functions or of ours.
cl_program MathSurvey::trial_program(const std::vector<Use>& uses, bool ours) const {
    std::vector<OwnFunction> own;
    std::string lines;
    bool doubles = false;
    for (const auto& [function, is_double] : uses) {
        if (ours && function->needs != nullptr) {
            const MathFunction* const needed = find_math_function(function->needs);
            own.push_back({needed, is_ours({needed, false}), is_ours({needed, true})});
        }
        if (ours) own.push_back({function, !is_double, is_double});
        doubles |= is_double;
        lines += trial_line(*function, is_double, ours);
    }
    return build_({probe_name, cat(own_functions(own, doubles), kernel_source(probe_name), lines),
                   has_wide_vectors(target_) ? "-DWIDE=1" : "-DWIDE=0"});
}

template <typename T>
bool MathSurvey::needs_ours(cl_program drivers, const Use& use) const {
    const MathFunction& function = *use.first;
    const MathTrial<T> trial = math_trial<T>(function);
    const auto wrong = first_wrong(function, trial, results(drivers, use, trial));
    if (!wrong) return false;
    const bool is_better = !first_wrong(function, trial, results_of(function, trial, true));
    const std::size_t i = *wrong % trial.a.size();
    const std::string b =
        function.arity == 2 ? cat(", ", static_cast<double>(trial.b[i])) : std::string();
    log(is_better ? LogLevel::info : LogLevel::warning,
        cat("device ", target_.device().str(), " computes ", function.name, "(",
            static_cast<double>(trial.a[i]), b, ") of ", use.second ? "double" : "float",
            " wrongly",
            is_better ? "; kernels compute it by the library's own text"
                      : ", and so does the library's own text"));
    return is_better;
}

template <typename T>
std::vector<T> MathSurvey::results(cl_program program, const Use& use,
                                   const MathTrial<T>& trial) const {
    cl_int code = CL_SUCCESS;
    const Held<cl_kernel> kernel(
        clCreateKernel(program, kernel_name(*use.first, use.second).c_str(), &code));
    cl_check(code, "a trial of functions");
    return run_trial(context_, device_, kernel.get(), trial, has_wide_vectors(target_) ? 5 : 2);
}

template <typename T>
std::vector<T> MathSurvey::results_of(const MathFunction& function, const MathTrial<T>& trial,
                                      bool ours) const {
    const Use use{&function, std::is_same_v<T, double>};
    const Held<cl_program> program(trial_program({use}, ours));
    return results(program.get(), use, trial);
}

template std::vector<float> MathSurvey::results_of(const MathFunction&, const MathTrial<float>&,
                                                   bool) const;
template std::vector<double> MathSurvey::results_of(const MathFunction&, const MathTrial<double>&,
                                                    bool) const;

std::string MathSurvey::key() const {
    std::string texts = kernel_source(probe_name);
    for (const MathFunction& function : math_functions())
        if (function.text == MathFunction::Text::numbers ||
            function.text == MathFunction::Text::vectors)
            texts += kernel_source(cat("own/", function.name, ".clh"));
    return cat(target_.device_key(), "functions that it computes wrongly\n", DLPRIM_VERSION, '\n',
               hash_hex(texts));
}

void MathSurvey::load() {
    const auto known = target_.disk().enabled() ? target_.disk().load(key()) : std::nullopt;
    if (!known) return;
    for (const std::string& line : split(*known, '\n')) {
        const std::vector<std::string> words = split(line, ' ');
        const MathFunction* function = words.size() == 3 ? find_math_function(words[0]) : nullptr;
        if (function != nullptr) verdicts_[{function, words[1] == "double"}] = words[2] == "ours";
    }
}

void MathSurvey::save() {
    if (!target_.disk().enabled()) return;
    // Processes that compile for one program try functions at the same time.
    const BuildLock lock;
    load();  // what other processes have found since
    std::string text;
    for (const auto& [use, ours] : verdicts_)
        text += cat(use.first->name, use.second ? " double" : " float", ours ? " ours" : " right",
                    '\n');
    target_.disk().save(key(), text);
}

}  // namespace dlprim
