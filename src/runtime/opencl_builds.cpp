// SPDX-License-Identifier: MIT
// OpenCLBuilds: compiling, loading, saving, and the log file of a program that does not build.
#include "runtime/opencl_builds.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/build_again.hpp"
#include "runtime/compile_program.hpp"
#include "runtime/counting.hpp"
#include "runtime/kernel_bodies.hpp"
#include "runtime/kernel_turns.hpp"
#include "runtime/pocl_cache.hpp"
#include "runtime/ptx_target.hpp"
#include "runtime/shipped_programs.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <unistd.h>

namespace dlprim {
namespace {

// If a program does not build, PoCL's compiler writes "1 error generated." to stderr, although
// often another engine replaces it. This option makes Clang omit that count. PoCL does not know the
// option and would reject it. PoCL splits options only at blanks and Clang splits them at any white
// space, so a tab hides it from PoCL. Where a compiler does not split at tabs either, the text is a
// macro that no kernel reads.
constexpr const char* no_count = " -DDLPRIM_NO_COUNT=1\t-fno-caret-diagnostics";

/// The option for divisions and square roots of floats that are rounded correctly, if the device
/// has it and does not round so anyhow, as processors do. OpenCL allows 2.5 units in the last
/// place, by which 6 / 2 need not be 3 on GPUs, and its whole part is 2.
const char* exact_division(cl_device_id device, DeviceKind kind) {
    cl_device_fp_config config = 0;
    clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(config), &config, nullptr);
    const bool has = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    return has && kind != DeviceKind::cpu ? " -cl-fp32-correctly-rounded-divide-sqrt" : "";
}

// Stands in the binary cache for a program of a driver that keeps what it compiles.
constexpr std::string_view kept_by_driver = "the driver keeps it";

}  // namespace

std::string device_key_of(const OpenCLDevice& device) {
    return cat(device_class(device.info), '\n', device.info.driver, '\n', device.info.platform,
               '\n', device.platform_version, '\n');
}

OpenCLBuilds::OpenCLBuilds(const OpenCLDevice& device, cl_context context, BinaryCache disk,
                           Counters& counters, std::function<void()> compiled, bool serves)
    : device_(static_cast<cl_device_id>(device.device)),
      context_(context),
      disk_(std::move(disk)),
      counters_(counters),
      compiled_(std::move(compiled)),
      serves_(serves),
      info_(device.info),
      device_key_(device_key_of(device)),
      exact_division_(exact_division(device_, device.info.kind)),
      device_memory_(device.traits.global_bytes),
      is_pocl_(is_pocl(device.platform_version)),
      driver_keeps_(is_pocl_ && info_.kind == DeviceKind::cpu && pocl_keeps_programs()),
      builds_alone_(device.info.platform == "Oclgrind"),
      takes_turns_(needs_kernel_turns(device.platform_version)),
      math_(
          *this, context, device_,
          [this](const ProgramSource& source) { return try_functions(source); },
          !serves || driver_keeps_) {}

std::string OpenCLBuilds::key_of(const ProgramSource& source) const {
    return key_of_corrected(math_.corrected(source));
}

std::string OpenCLBuilds::key_of_corrected(const ProgramSource& source) const {
    // PoCL keeps programs by the texts that it gets, with declarations in front and bodies apart.
    return cat(device_key_, source.options, device_options(source),
               declarations() == nullptr ? "" : PoclDeclarations::option,
               splits_kernels() ? " bodies apart" : "", '\n', source.source);
}

cl_program OpenCLBuilds::try_functions(const ProgramSource& source) const {
    shield(source);
    std::optional<BuildLock> turn;
    if (is_pocl_) turn.emplace(pocl_cache_folder(), source.source);
    return from_source(source);
}

std::string OpenCLBuilds::device_options(const ProgramSource& source) const {
    const bool prefetches =
        source.source.find("__builtin_prefetch") == std::string::npos || survey().prefetches;
    const bool slow_fma = source.source.find("SLOW_FMA") != std::string::npos && fma_is_slow();
    return cat(exact_division_, prefetches ? "" : " -DNO_PREFETCH", slow_fma ? " -DSLOW_FMA" : "");
}

bool OpenCLBuilds::fma_is_slow() const {
    std::call_once(fma_tried_, [this] { fma_is_slow_ = dlprim::fma_is_slow(trial_device()); });
    return fma_is_slow_;
}

TrialDevice OpenCLBuilds::trial_device() const {
    const auto build = [this](const ProgramSource& source) { return try_functions(source); };
    return {*this, context_, device_, build, !serves_};
}

const CompilerSurvey& OpenCLBuilds::survey() const {
    std::call_once(surveyed_, [this] {
        // PoCL's compiler for processors is Clang, which knows prefetches, and a process for the
        // trial would take half a second of the first result.
        if (is_pocl_ && info_.kind == DeviceKind::cpu) return;
        const auto executable = serves_ || !disk_.enabled() || !disk_.writable()
                                    ? std::optional<std::filesystem::path>()
                                    : compile_program();
        survey_ = executable ? survey_compiler(*this, *executable)
                             : known_survey(*this).value_or(CompilerSurvey{});
    });
    return survey_;
}

bool OpenCLBuilds::shield(const ProgramSource& source) const {
    if (serves_ || !survey().needs_shield || disk_.load(key_of_corrected(source))) return false;
    const auto executable = compile_program();
    if (!executable) return false;
    if (!shield_.survives(source, *executable))
        fail(ErrorKind::build, "the compiler of device ", info_.str(), " ends its process over '",
             source.name, "'; a newer driver may help");
    return true;
}

bool OpenCLBuilds::keeps(const ProgramSource& source) const {
    return disk_.has(key_of(source));
}

bool OpenCLBuilds::surely_keeps(const ProgramSource& source) const {
    return math_.knows(source) && keeps(source);
}

cl_program OpenCLBuilds::make(const ProgramSource& source, bool ahead) const {
    return make_corrected(math_.corrected(source), ahead);
}

cl_program OpenCLBuilds::make_corrected(const ProgramSource& source, bool ahead) const {
    const std::string key = key_of_corrected(source);
    const bool shielded = shield(source);  // before the lock, which the other process takes, too
    std::optional<BuildLock> turn;
    if (is_pocl_) turn.emplace(pocl_cache_folder(), key);
    if (const auto binary = disk_.load(key)) {
        if (*binary == kept_by_driver) {
            count(ahead || shielded ? counters_.compiles : counters_.cache_hits);
            return from_source(source);
        }
        if (const cl_program program = from_binary(source, *binary)) {
            count(ahead || shielded ? counters_.compiles : counters_.cache_hits);
            // A shipped one, from which PoCL has filled its own cache.
            if (driver_keeps_) disk_.save(key, kept_by_driver);
            return program;
        }
        log(LogLevel::info,
            cat("kernel cache: the binary of '", source.name, "' does not load, it is rebuilt"));
    }
    count(counters_.compiles);
    cl_program program = from_source(source);
    if (driver_keeps_) {
        disk_.save(key, kept_by_driver);
        return program;
    }
    if (wants_ptx_target(source.source)) program = with_instructions(source, program);
    if (disk_.enabled()) {
        const std::string binary = binary_of(program);
        if (!binary.empty()) disk_.save(key, binary);
    }
    return program;
}

void OpenCLBuilds::write(const ProgramSource& source, cl_program program,
                         const BinaryCache& to) const {
    const std::string key = key_of(source);
    std::optional<BuildLock> turn;
    if (is_pocl_) turn.emplace(pocl_cache_folder(), key);
    const std::string binary = binary_of(program);
    if (!binary.empty()) to.write(key, binary);
    if (const auto known = disk_.load(math_.key())) to.write(math_.key(), *known);
}

std::unique_lock<std::mutex> OpenCLBuilds::alone() const {
    static std::mutex mutex;  // of the process, as the compiler's data is
    return builds_alone_ ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

/// Returns the program with its marked instructions activated (runtime/ptx_target.hpp), or `marked`
/// if it has none.
cl_program OpenCLBuilds::with_instructions(const ProgramSource& source, cl_program marked) const {
    // The preprocessor may have removed the part of the source that has the mark.
    const std::string compiled = binary_of(marked);
    if (!wants_ptx_target(compiled)) return marked;
    clReleaseProgram(marked);
    const auto ptx = with_ptx_target(compiled);
    const cl_program made = ptx ? from_binary(source, *ptx) : nullptr;
    if (made == nullptr)
        fail(ErrorKind::build, "kernel program '", source.name, "' needs instructions that device ",
             info_.str(), " or its driver does not support");
    return made;
}

cl_program OpenCLBuilds::from_binary(const ProgramSource& source, const std::string& binary) const {
    const auto lock = alone();
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
    const std::size_t size = binary.size();
    cl_int code = CL_SUCCESS, status = CL_SUCCESS;
    const cl_program program =
        clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &status, &code);
    if (code != CL_SUCCESS || status != CL_SUCCESS) {
        if (program != nullptr && code == CL_SUCCESS) clReleaseProgram(program);
        return nullptr;
    }
    if (clBuildProgram(program, 1, &device_, source.options.c_str(), nullptr, nullptr) !=
        CL_SUCCESS) {
        clReleaseProgram(program);
        return nullptr;
    }
    return program;
}

const PoclDeclarations* OpenCLBuilds::declarations() const {
    return is_pocl_ && info_.kind == DeviceKind::cpu ? PoclDeclarations::of_process() : nullptr;
}

cl_program OpenCLBuilds::from_source(const ProgramSource& source) const {
    const auto start = std::chrono::steady_clock::now();
    Built built;
    if (splits_kernels()) {
        const ProgramSource split{source.name, bodies_apart(source.source), source.options};
        const PoclDeclarations* const known = declarations();
        built = build(known != nullptr ? known->in_front_of(split) : split);
        if (built.code != CL_SUCCESS) {
            clReleaseProgram(built.program);
            log(LogLevel::info,
                cat("'", source.name, "' is built with all of PoCL's declarations"));
        }
    }
    if (!splits_kernels() || built.code != CL_SUCCESS) built = build(source);
    if (built.code != CL_SUCCESS) build_failed(built.program, source, built.code);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    log(LogLevel::debug, cat("compiled '", source.name, "' in ", seconds.count(), " s"));
    return built.program;
}

OpenCLBuilds::Built OpenCLBuilds::build(const ProgramSource& source) const {
    const char* text = source.source.c_str();
    const std::size_t size = source.source.size();
    // Without -w, PoCL's compiler writes "8 warnings generated." to stderr when vectors are wider
    // than the processor's. A library must not write there.
    const std::string options =
        cat(source.options, device_options(source), " -w", is_pocl_ ? no_count : "");
    Built built;
    const auto attempt = [&] {
        const auto lock = alone();
        if (built.program != nullptr) clReleaseProgram(built.program);
        built.program = clCreateProgramWithSource(context_, 1, &text, &size, &built.code);
        cl_check(built.code, "making program '", source.name, "'");
        built.code = clBuildProgram(built.program, 1, &device_, options.c_str(), nullptr, nullptr);
        if (compiled_) compiled_();
        if (built.code == CL_SUCCESS) return Attempt::worked;
        return first_error(log_of(built.program)).empty() ? Attempt::failed_in_silence
                                                          : Attempt::failed;
    };
    build_again_in_turn(attempt, source.name);
    return built;
}

std::string OpenCLBuilds::log_of(cl_program program) const {
    std::size_t size = 0;
    if (clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
        CL_SUCCESS)
        return {};
    std::string text(size, '\0');
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

void OpenCLBuilds::build_failed(cl_program program, const ProgramSource& source,
                                cl_int code) const {
    const std::string text = log_of(program);
    clReleaseProgram(program);
    std::string first = first_error(text);
    if (std::size_t end = 200; first.size() > end) {
        while ((first[end] & 0xC0) == 0x80) --end;  // do not cut a character
        first = first.substr(0, end) + "...";
    }
    std::string where = "its log could not be written";
    const std::string file =
        cat("build-", hash_hex(source.source + source.options).substr(0, 16), ".log");
    const std::string body =
        cat("program: ", source.name, "\ndevice: ", info_.str(), "\noptions: ", source.options,
            "\nresult: ", cl_error_name(code), "\n\n", text, "\n\nsource:\n", source.source);
    std::error_code ignored;
    std::vector<std::filesystem::path> folders;
    if (const auto cache = cache_dir()) folders.push_back(*cache / "logs");
    folders.push_back(std::filesystem::temp_directory_path(ignored));
    for (const std::filesystem::path& folder : folders) {
        try {
            std::filesystem::create_directories(folder, ignored);
            write_file_atomically(folder / file, body);
            where = cat("its log is in '", (folder / file).string(), "'");
            break;
        } catch (const Error&) {
            // Try the next folder.
        }
    }
    fail(ErrorKind::build, "kernel program '", source.name, "' does not build on device ",
         info_.str(), ": ", first.empty() ? cl_error_name(code) : first, "; ", where);
}

// If the context was given and holds several devices, so does the program. Returns the binary of
// this context's device only.
std::string OpenCLBuilds::binary_of(cl_program program) const {
    cl_uint count = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(count), &count, nullptr) !=
        CL_SUCCESS)
        return {};
    std::vector<cl_device_id> devices(count);
    std::vector<std::size_t> sizes(count);
    if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data(),
                         nullptr) != CL_SUCCESS ||
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof(std::size_t),
                         sizes.data(), nullptr) != CL_SUCCESS)
        return {};
    const auto mine = std::find(devices.begin(), devices.end(), device_);
    if (mine == devices.end()) return {};
    const auto place = static_cast<std::size_t>(mine - devices.begin());
    std::string binary(sizes[place], '\0');
    std::vector<unsigned char*> bytes(count, nullptr);
    bytes[place] = reinterpret_cast<unsigned char*>(binary.data());
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof(unsigned char*), bytes.data(),
                         nullptr) != CL_SUCCESS)
        return {};
    return binary;
}

}  // namespace dlprim
