// SPDX-License-Identifier: MIT
// An opened OpenCL device: memory, programs that are built or loaded from the caches, and a clean
// end.
#include "base/env.hpp"
#include "base/hash.hpp"
#include "runtime/binary_cache.hpp"
#include "runtime/build_again.hpp"
#include "runtime/cl.hpp"
#include "runtime/core_affinity.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/huge_pages.hpp"
#include "runtime/instruction_probe.hpp"
#include "runtime/memory.hpp"
#include "runtime/opencl_program.hpp"
#include "runtime/opencl_queue.hpp"
#include "runtime/opencl_transfer.hpp"
#include "runtime/pocl_cache.hpp"
#include "runtime/program_builds.hpp"
#include "runtime/ptx_target.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <pthread.h>

namespace dlprim {
namespace {

class OpenCLContext;

// All live contexts. At the end of the process, their work is awaited while drivers still function.
struct Live {
    std::mutex mutex;
    std::set<OpenCLContext*> contexts;
    std::atomic<bool> gone{false};    // drivers must not be called any more
    std::atomic<bool> forked{false};  // this process is a fork() of the one that opened them
};

Live& live() {
    static Live* instance = new Live;
    return *instance;
}

class OpenCLBuffer : public Buffer {
  public:
    /// Takes ownership of `memory`. `account` (may be null) counts its bytes.
    OpenCLBuffer(std::uint64_t bytes, cl_mem memory, std::uint64_t* account)
        : Buffer(bytes, nullptr, memory), account_(account) {
        if (account_ != nullptr)
            count(*account_, bytes);
        else
            set_foreign();
    }
    ~OpenCLBuffer() override {
        if (account_ != nullptr) uncount(*account_, bytes());
        if (!opencl_gone()) clReleaseMemObject(static_cast<cl_mem>(handle()));
    }

  private:
    std::uint64_t* account_;
};

class OpenCLContext : public PooledContext {
  public:
    OpenCLContext(const OpenCLDevice& device, const OpenCLObjects& given);
    ~OpenCLContext() override;

    std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) override;
    Queue& queue() override { return *queue_; }
    std::shared_ptr<Program> build(const ProgramSource& source) override;
    void* cl_context_handle() const override { return context_; }
    void* cl_device_handle() const override { return device_; }
    void* cl_queue_handle() const override { return queue_->handle(); }
    std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to, std::uint64_t byte_offset,
                                         std::uint64_t bytes) override {
        return make_opencl_feed(transfer_home(), std::move(to), byte_offset, bytes);
    }
    std::unique_ptr<Readback> make_readback(std::uint64_t bytes) override {
        return make_opencl_readback(transfer_home(), bytes);
    }
    void drain() noexcept { queue_->drain(); }
    /// Sets the traits that can only be found by running something.
    void probe() {
        probe_matrix_units();
        // Engines for devices with wide vectors do not use sub-groups.
        if (traits_.subgroup_size != 0 && !traits_.wide_vectors &&
            !subgroups_work(*this, traits_.subgroup_size))
            traits_.subgroup_size = 0;
    }

  protected:
    std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) override;

  private:
    /// Tests each type of operands separately.
    void probe_matrix_units() {
        const bool halves = std::exchange(traits_.matrix_fp16, false);
        const bool bfloats = std::exchange(traits_.matrix_bf16, false);
        if (traits_.wgmma) {
            traits_.matrix_fp16 = halves && wgmma_works(*this, DType::f16);
            traits_.matrix_bf16 = bfloats && wgmma_works(*this, DType::bf16);
            traits_.wgmma = traits_.matrix_fp16 || traits_.matrix_bf16;
        }
        // The warp instructions are used only where warpgroup instructions are missing.
        const bool try_mma = traits_.mma && !traits_.wgmma;
        std::uint64_t bytes = std::exchange(traits_.mma_local_bytes, 0);
        const auto mma_works = [&](DType type) {
            const std::uint64_t found = mma_local_bytes(*this, bytes, type);
            if (found == 0) return false;
            // The next type is tested with at most this much, so the result holds for both types.
            traits_.mma_local_bytes = bytes = found;
            return true;
        };
        if (try_mma) {
            traits_.matrix_fp16 = halves && mma_works(DType::f16);
            traits_.matrix_bf16 = bfloats && mma_works(DType::bf16);
        }
        traits_.mma = traits_.mma_local_bytes > 0;
    }
    TransferHome transfer_home() { return {shared_from_this(), context_, *queue_}; }

    cl_program make_program(const ProgramSource& source, const std::string& key);
    cl_program from_binary(const ProgramSource& source, const std::string& binary) const;
    cl_program from_source(const ProgramSource& source);
    cl_program with_instructions(const ProgramSource& source, cl_program marked) const;
    std::string log_of(cl_program program) const;
    [[noreturn]] void build_failed(cl_program program, const ProgramSource& source,
                                   cl_int code) const;
    std::string binary_of(cl_program program) const;

    cl_device_id device_;
    cl_context context_ = nullptr;
    std::unique_ptr<OpenCLQueue> queue_;
    std::string device_key_;
    bool is_pocl_ = false;
    BinaryCache disk_;
    std::mutex programs_mutex_;
    std::map<std::string, std::shared_ptr<OpenCLProgram>> programs_;  // by key
};

// If a program does not build, PoCL's compiler writes "1 error generated." to stderr, although
// often another engine replaces it. This option makes Clang omit that count. PoCL does not know the
// option and would reject it. PoCL splits options only at blanks and Clang splits them at any white
// space, so a tab hides it from PoCL. Where a compiler does not split at tabs either, the text is a
// macro that no kernel reads.
constexpr const char* no_count = " -DDLPRIM_NO_COUNT=1\t-fno-caret-diagnostics";

// Waits for all work, then forbids releases. Exit handlers run in reverse order of registration. So
// this one is registered after a driver is first used, and again after its compiler is first used:
// PoCL compiles in its worker threads, which must not outlive the static variables of its compiler.
void at_exit() {
    Live& all = live();
    if (all.forked) return;
    const std::lock_guard lock(all.mutex);
    for (OpenCLContext* context : all.contexts) context->drain();
    all.gone = true;
}

// Makes a context for one device, or retains the one that is given.
cl_context context_for(const OpenCLDevice& device, void* given, const std::string& name) {
    if (given != nullptr) {
        const auto context = static_cast<cl_context>(given);
        cl_check(clRetainContext(context), "keeping the cl_context of device ", name);
        return context;
    }
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(device.platform), 0};
    const auto id = static_cast<cl_device_id>(device.device);
    cl_int code = CL_SUCCESS;
    const cl_context context = clCreateContext(properties, 1, &id, nullptr, nullptr, &code);
    cl_check(code, "opening device ", name);
    return context;
}

// A fork() leaves a driver's threads in the parent, so calls in a child may wait forever. Therefore
// a child releases nothing. Some drivers wait, when the child ends, for work that was running at
// the fork, so all work is finished before it.
void part_at_forks() {
    const auto wait_for_work = [] {
        Live& all = live();
        all.mutex.lock();
        if (all.gone) return;
        for (OpenCLContext* context : all.contexts) context->drain();
    };
    const auto go_on = [] { live().mutex.unlock(); };
    const auto let_go = [] {
        live().forked = live().gone = true;
        live().mutex.unlock();
    };
    pthread_atfork(wait_for_work, go_on, let_go);
}

OpenCLContext::OpenCLContext(const OpenCLDevice& device, const OpenCLObjects& given)
    : device_(static_cast<cl_device_id>(device.device)) {
    info_ = device.info;
    traits_ = device.traits;
    lower_traits(traits_);
    device_key_ = cat(info_.name, '\n', info_.driver, '\n', info_.platform, '\n',
                      device.platform_version, '\n');
    is_pocl_ = is_pocl(device.platform_version);
    disk_ = BinaryCache::from_environment();
    context_ = context_for(device, given.context, info_.str());
    try {
        queue_ = std::make_unique<OpenCLQueue>(context_, device_, counters_,
                                               static_cast<cl_command_queue>(given.queue));
    } catch (...) {
        clReleaseContext(context_);
        throw;
    }
    traits_.own_cores = bind_runtime_threads(context_, device_);
    static std::once_flag opened;
    std::call_once(opened, [] {
        std::atexit(at_exit);
        part_at_forks();
    });
    const std::lock_guard lock(live().mutex);
    live().contexts.insert(this);
}

OpenCLContext::~OpenCLContext() {
    if (!opencl_gone()) {
        const std::lock_guard lock(live().mutex);
        live().contexts.erase(this);
    }
    if (!opencl_gone()) queue_->drain();
    kept_.clear();
    programs_.clear();
    queue_.reset();
    if (!opencl_gone()) clReleaseContext(context_);
}

std::unique_ptr<Buffer> OpenCLContext::make_buffer(std::uint64_t bytes) {
    cl_mem memory = nullptr;
    if (info_.kind == DeviceKind::cpu) memory = make_in_huge_pages(context_, bytes);
    cl_int code = CL_SUCCESS;
    if (memory == nullptr)
        memory = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS) return nullptr;
    return std::make_unique<OpenCLBuffer>(bytes, memory, &counters_.allocated_bytes);
}

std::shared_ptr<Buffer> OpenCLContext::wrap(void* handle, std::uint64_t bytes) {
    require(handle != nullptr, "the cl_mem to wrap must not be null");
    const cl_mem memory = static_cast<cl_mem>(handle);
    cl_context owner = nullptr;
    std::size_t size = 0;
    cl_check(clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof(cl_context), &owner, nullptr),
             "wrapping a cl_mem");
    cl_check(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(size), &size, nullptr),
             "wrapping a cl_mem");
    require(owner == context_,
            "the cl_mem to wrap belongs to another cl_context than the one given");
    require(bytes <= size, "the cl_mem to wrap holds ", size, " bytes, fewer than the ", bytes,
            " needed");
    cl_check(clRetainMemObject(memory), "wrapping a cl_mem");
    return {new OpenCLBuffer(size, memory, nullptr),
            [self = shared_from_this()](Buffer* freed) { delete freed; }};
}

std::shared_ptr<Program> OpenCLContext::build(const ProgramSource& source) {
    const std::string key = cat(device_key_, source.options, '\n', source.source);
    std::shared_ptr<OpenCLProgram> program;
    {
        const std::lock_guard lock(programs_mutex_);
        std::shared_ptr<OpenCLProgram>& entry = programs_[key];
        if (!entry) {
            // The lambda may hold `this`, because the context keeps the program and lives longer.
            const auto compile = [this, key](const ProgramSource& s) {
                return make_program(s, key);
            };
            entry = std::make_shared<OpenCLProgram>(compile, source);
        }
        program = entry;
    }
    if (BuildsLater::wanted())
        NotedBuilds::note(program);
    else
        program->handle();
    return program;
}

cl_program OpenCLContext::make_program(const ProgramSource& source, const std::string& key) {
    std::optional<BuildLock> turn;
    if (is_pocl_) turn.emplace(pocl_cache_folder(), key);
    if (const auto binary = disk_.load(key)) {
        if (const cl_program program = from_binary(source, *binary)) {
            count(counters_.cache_hits);
            return program;
        }
        log(LogLevel::info,
            cat("kernel cache: the binary of '", source.name, "' does not load, it is rebuilt"));
    }
    cl_program program = from_source(source);
    if (wants_ptx_target(source.source)) program = with_instructions(source, program);
    if (disk_.enabled()) {
        const std::string binary = binary_of(program);
        if (!binary.empty()) disk_.save(key, binary);
    }
    return program;
}

/// Returns the program with its marked instructions activated (runtime/ptx_target.hpp), or `marked`
/// if it has none.
cl_program OpenCLContext::with_instructions(const ProgramSource& source, cl_program marked) const {
    // The preprocessor may have removed the part of the source that has the mark.
    const std::string compiled = binary_of(marked);
    if (!wants_ptx_target(compiled)) return marked;
    clReleaseProgram(marked);
    const auto ptx = with_ptx_target(compiled);
    const cl_program made = ptx ? from_binary(source, *ptx) : nullptr;
    if (made == nullptr)
        fail(ErrorKind::build, "kernel program '", source.name, "' needs instructions that device ",
             info_.str(), " or its driver does not take");
    return made;
}

cl_program OpenCLContext::from_binary(const ProgramSource& source,
                                      const std::string& binary) const {
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

cl_program OpenCLContext::from_source(const ProgramSource& source) {
    const char* text = source.source.c_str();
    const std::size_t size = source.source.size();
    // Without -w, PoCL's compiler writes "8 warnings generated." to stderr when vectors are wider
    // than the processor's. A library must not write there.
    const std::string options = source.options + " -w" + (is_pocl_ ? no_count : "");
    count(counters_.compiles);
    const auto start = std::chrono::steady_clock::now();
    cl_program program = nullptr;
    cl_int code = CL_SUCCESS;
    const auto build = [&] {
        if (program != nullptr) clReleaseProgram(program);
        program = clCreateProgramWithSource(context_, 1, &text, &size, &code);
        cl_check(code, "making program '", source.name, "'");
        code = clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
        static std::once_flag compiled;
        std::call_once(compiled, [] { std::atexit(at_exit); });
        if (code == CL_SUCCESS) return Attempt::worked;
        return first_error(log_of(program)).empty() ? Attempt::failed_in_silence : Attempt::failed;
    };
    if (build_again_in_turn(build, source.name) != Attempt::worked)
        build_failed(program, source, code);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    log(LogLevel::debug, cat("compiled '", source.name, "' in ", seconds.count(), " s"));
    return program;
}

std::string OpenCLContext::log_of(cl_program program) const {
    std::size_t size = 0;
    if (clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
        CL_SUCCESS)
        return {};
    std::string text(size, '\0');
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

void OpenCLContext::build_failed(cl_program program, const ProgramSource& source,
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
std::string OpenCLContext::binary_of(cl_program program) const {
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

}  // namespace

bool opencl_gone() noexcept {
    return live().gone.load();
}

std::shared_ptr<ContextImpl> make_opencl_context(const OpenCLDevice& device,
                                                 const OpenCLObjects& given) {
    const auto context = std::make_shared<OpenCLContext>(device, given);
    context->probe();
    return context;
}

}  // namespace dlprim
