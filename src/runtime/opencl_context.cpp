// SPDX-License-Identifier: MIT
// An opened OpenCL device: memory, programs built or taken from the caches, and an orderly end.
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
#include "runtime/program_builds.hpp"
#include "runtime/ptx_target.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <pthread.h>

namespace dlprim {
namespace {

class OpenCLContext;

// The contexts that live, so that the process's end can wait for their work while drivers still
// work.
struct Live {
    std::mutex mutex;
    std::set<OpenCLContext*> contexts;
    std::atomic<bool> gone{false};    // drivers must not be called any more
    std::atomic<bool> forked{false};  // this is a child of the process that opened them
};

Live& live() {
    static Live* instance = new Live;
    return *instance;
}

class OpenCLBuffer : public Buffer {
  public:
    /// Takes over `memory`; `account` (may be null) counts its bytes.
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
    explicit OpenCLContext(const OpenCLDevice& device);
    ~OpenCLContext() override;

    std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) override;
    Queue& queue() override { return *queue_; }
    std::shared_ptr<Program> build(const ProgramSource& source) override;
    void* cl_context_handle() const override { return context_; }
    void* cl_device_handle() const override { return device_; }
    std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to, std::uint64_t byte_offset,
                                         std::uint64_t bytes) override {
        return make_opencl_feed(transfer_home(), std::move(to), byte_offset, bytes);
    }
    std::unique_ptr<Readback> make_readback(std::uint64_t bytes) override {
        return make_opencl_readback(transfer_home(), bytes);
    }
    void drain() noexcept { queue_->drain(); }
    /// Settles the traits that only running something shows.
    void probe() {
        probe_matrix_units();
        // Nobody asks for sub-groups where there are wide vectors.
        if (traits_.subgroup_size != 0 && !traits_.wide_vectors &&
            !subgroups_work(*this, traits_.subgroup_size))
            traits_.subgroup_size = 0;
    }

  protected:
    std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) override;

  private:
    /// Each type that the instructions multiply is tried by itself.
    void probe_matrix_units() {
        const bool halves = std::exchange(traits_.matrix_fp16, false);
        const bool bfloats = std::exchange(traits_.matrix_bf16, false);
        if (traits_.wgmma) {
            traits_.matrix_fp16 = halves && wgmma_works(*this, DType::f16);
            traits_.matrix_bf16 = bfloats && wgmma_works(*this, DType::bf16);
            traits_.wgmma = traits_.matrix_fp16 || traits_.matrix_bf16;
        }
        // The smaller instructions are for where the larger ones are not.
        const bool try_mma = traits_.mma && !traits_.wgmma;
        std::uint64_t bytes = std::exchange(traits_.mma_local_bytes, 0);
        const auto mma_works = [&](DType type) {
            const std::uint64_t found = mma_local_bytes(*this, bytes, type);
            if (found == 0) return false;
            // No more for the type that is tried next, and in the end what serves both.
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
    bool counts_errors_ = false;  ///< a PoCL: see no_count
    BinaryCache disk_;
    std::mutex programs_mutex_;
    std::map<std::string, std::shared_ptr<OpenCLProgram>> programs_;  // by key
};

// PoCL's compiler writes "1 error generated." to stderr where a program does not build, whatever
// becomes of that: often another engine takes its place. Clang leaves the count out with this
// option, which PoCL knows nothing of; but it parts options at blanks alone, and Clang's at any
// white space. Where a tab does not part them, it is a macro that no kernel reads.
constexpr const char* no_count = " -DDLPRIM_NO_COUNT=1\t-fno-caret-diagnostics";

// Waits for all work, then forbids releases. Handlers run in reverse order of registration, so this
// is registered after a driver is first used, and again after its compiler is: PoCL compiles in its
// worker threads, which must not outlive what its compiler keeps in static variables.
void at_exit() {
    Live& all = live();
    if (all.forked) return;
    const std::lock_guard lock(all.mutex);
    for (OpenCLContext* context : all.contexts) context->drain();
    all.gone = true;
}

// A driver's threads stay with the parent of a fork(): calls in a child may wait for ever. So a
// child releases nothing. Some drivers wait by themselves when the child ends, for the work that
// was under way, so there must be none.
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

OpenCLContext::OpenCLContext(const OpenCLDevice& device)
    : device_(static_cast<cl_device_id>(device.device)) {
    info_ = device.info;
    traits_ = device.traits;
    lower_traits(traits_);
    device_key_ = cat(info_.name, '\n', info_.driver, '\n', info_.platform, '\n',
                      device.platform_version, '\n');
    counts_errors_ = device.platform_version.find("PoCL") != std::string::npos;
    disk_ = BinaryCache::from_environment();
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(device.platform), 0};
    cl_int code = CL_SUCCESS;
    context_ = clCreateContext(properties, 1, &device_, nullptr, nullptr, &code);
    cl_check(code, "opening device ", info_.str());
    try {
        queue_ = std::make_unique<OpenCLQueue>(context_, device_, counters_);
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
            // The program lives no longer than this, which keeps it.
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

/// The program with the instructions that its text marks (runtime/ptx_target.hpp), in place of
/// `marked`.
cl_program OpenCLContext::with_instructions(const ProgramSource& source, cl_program marked) const {
    // A mark of the source may be in what the preprocessor leaves out.
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
    // Without -w PoCL's compiler writes "8 warnings generated." to stderr where vectors are wider
    // than the processor's, and that is not for a library to do.
    const std::string options = source.options + " -w" + (counts_errors_ ? no_count : "");
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
        while ((first[end] & 0xC0) == 0x80) --end;  // no half of a character
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
            // The next folder is tried.
        }
    }
    fail(ErrorKind::build, "kernel program '", source.name, "' does not build on device ",
         info_.str(), ": ", first.empty() ? cl_error_name(code) : first, "; ", where);
}

std::string OpenCLContext::binary_of(cl_program program) const {
    std::size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
            CL_SUCCESS ||
        size == 0)
        return {};
    std::string binary(size, '\0');
    auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) !=
        CL_SUCCESS)
        return {};
    return binary;
}

}  // namespace

bool opencl_gone() noexcept {
    return live().gone.load();
}

std::shared_ptr<ContextImpl> make_opencl_context(const OpenCLDevice& device) {
    const auto context = std::make_shared<OpenCLContext>(device);
    context->probe();
    return context;
}

}  // namespace dlprim
