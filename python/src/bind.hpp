// SPDX-License-Identifier: MIT
// What the files of the Python module share: one bind_ function per part, and rules for all of
// them.
//
// The module includes only include/dlprim. Every call that may take long releases the interpreter's
// lock. A call on a Net or a Solver first takes the lock of its context (ContextLock), because the
// nets of one context may be used by only one thread at a time. Code that may log must also have
// released the interpreter's lock: the receiver of dlprim.set_log takes it, while other threads
// that log wait for the receiver. Destructors do not log.
#pragma once

#include "gil.hpp"

// Every file must include this. A file without it would convert strings differently, and the linker
// keeps only one version.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <dlprim/dlprim.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlprim::python {

namespace nb = nanobind;

// Each function adds its classes and functions to the module dlprim._core.
void bind_errors(nb::module_& module);
void bind_dtypes(nb::module_& module);
void bind_context(nb::module_& module);
void bind_log(nb::module_& module);
void bind_compile_wait(nb::module_& module);
void bind_settings(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_function(nb::module_& module);
void bind_net(nb::module_& module);
void bind_onnx(nb::module_& module);
void bind_solver(nb::module_& module);
void bind_placed(nb::module_& module);
void bind_language(nb::module_& module);
void bind_embedding(nb::module_& module);

// Locks and forks (lock.cpp).

/// Releases the interpreter's lock and holds the lock of a context during its lifetime, or those of
/// several, which are taken in an order that all threads have. Meanwhile Python may be used only
/// with GilAcquire. Throws Error(device) in a child of fork() if a context belongs to the parent.
class ContextLock {
  public:
    explicit ContextLock(const Context& context);
    explicit ContextLock(const std::vector<Context>& contexts);
    /// Only tries to lock; is_held() returns whether it succeeded.
    ContextLock(const Context& context, std::try_to_lock_t);
    ~ContextLock();
    ContextLock(const ContextLock&) = delete;
    ContextLock& operator=(const ContextLock&) = delete;

    bool is_held() const { return lock_.owns_lock(); }

  private:
    using Lock = std::unique_lock<std::recursive_mutex>;
    GilRelease release_;
    // They are released before Python's lock is taken.
    Lock lock_;
    std::vector<Lock> others_;
};

/// Takes the lock of a context for a Python "with" block, and releases the interpreter's lock while
/// it waits. Calls inside the block may take the same lock again.
void enter_context_lock(const Context& context);
/// Releases it, in the same thread.
void leave_context_lock(const Context& context);

/// Records that this process opened a context.
void register_context(const Context& context);
/// Throws Error(device) in a child of fork() whose parent has used OpenCL, because drivers' threads
/// stay in the parent. Call it before any use of OpenCL.
void check_opencl_after_fork();

// Python's types (errors.cpp).

/// The kind of an object, for messages: "a float" or "a numpy.ndarray".
std::string kind_of(nb::handle object);
/// Throws TypeError: "<what> is <wanted>, not a list".
[[noreturn]] void wrong_type(const char* what, const char* wanted, nb::handle got);
const Context& to_context(nb::handle context);
/// Whether an object is an int, Python's or numpy's, and not an array.
bool is_int(nb::handle object);

// Element types (dtypes.cpp).

/// The name in Python: "float32".
const char* dtype_name(DType dtype);
/// Parses "float32", numpy.float32, numpy.dtype("f4") and so on. Throws TypeError.
DType to_dtype(nb::handle dtype);

// numpy (arrays.cpp).

nb::module_ numpy();

/// C-ordered memory in native byte order with the values of a number, a list, an array or anything
/// that numpy.asarray accepts. Copied if necessary.
struct HostArray {
    nb::object owner;
    DType dtype = DType::f32;
    Shape shape;
    const void* data = nullptr;
};
/// Throws TypeError if the library has no dtype for the elements.
HostArray to_host_array(nb::handle values);

/// New memory on the context's device with the values, converted to `dtype` if given.
Tensor to_tensor(const Context& context, nb::handle values, std::optional<DType> dtype = {});
Tensor to_tensor(const Context& context, const HostArray& host, std::optional<DType> dtype = {});
/// Overwrites a tensor or view with values of the same shape, converted to its dtype.
void copy_from(Tensor& tensor, nb::handle values);
/// A new numpy array with a copy of the values.
nb::object to_numpy(const Tensor& tensor);
/// Whether numpy lacks the type, whose elements are then held by their bits.
bool is_held_by_bits(DType dtype);
/// "uint16" or "uint8", of as many bits.
const char* bits_name(DType dtype);
/// The array of bits as one of ml_dtypes' types, where that package is installed and has it; else
/// the array itself. So is one of a type that numpy has.
nb::object typed_bits(nb::object array, DType dtype);
/// Copies the values into a numpy array of the tensor's shape and type.
void copy_to(const Tensor& tensor, nb::handle array);

/// The sizes in an int or a sequence of ints.
Shape to_shape(nb::handle sizes);
/// A tuple of ints.
nb::tuple to_tuple(const Shape& shape);

}  // namespace dlprim::python
