// SPDX-License-Identifier: MIT
// What the files of the Python module share: one bind_ function per part, and rules for all of
// them.
//
// The module sees include/dlprim alone. Every call that may take long releases the interpreter's
// lock; a call on a Net or a Solver first takes the lock of its context (ContextLock), since nets
// of one context are for one thread at a time. Whatever may log a line must have released the
// interpreter's lock, too: the receiver of dlprim.set_log takes it while other threads that log
// wait for it. Destructors do not log.
#pragma once

#include "gil.hpp"

// In every file: one that lacked it would cast strings in another way, and the linker keeps one of
// the two.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <dlprim/dlprim.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace dlprim::python {

namespace nb = nanobind;

// Each adds its classes and functions to the module dlprim._core.
void bind_errors(nb::module_& module);
void bind_dtypes(nb::module_& module);
void bind_context(nb::module_& module);
void bind_log(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_net(nb::module_& module);
void bind_solver(nb::module_& module);

// Locks and forks (lock.cpp).

/// Lets other Python threads run, and holds the lock of a context while it lives. Python must not
/// be touched meanwhile but by GilAcquire. Throws Error(device) in a child of fork()
/// where the context belongs to the parent.
class ContextLock {
  public:
    explicit ContextLock(const Context& context);
    /// Only tries: is_held() says whether it holds the lock.
    ContextLock(const Context& context, std::try_to_lock_t);
    ~ContextLock();
    ContextLock(const ContextLock&) = delete;
    ContextLock& operator=(const ContextLock&) = delete;

    bool is_held() const { return lock_.owns_lock(); }

  private:
    GilRelease release_;
    std::unique_lock<std::recursive_mutex> lock_;  ///< given back before Python's is taken
};

/// Takes the lock of a context for a Python "with" block; the interpreter's lock is free meanwhile
/// for other threads. What the block calls may take the same lock again.
void enter_context_lock(const Context& context);
/// Gives it back, in the same thread.
void leave_context_lock(const Context& context);

/// Notes that a context was opened by this process.
void register_context(const Context& context);
/// Throws Error(device) in a child of fork() whose parent has used OpenCL: drivers' threads stay
/// with the parent. Whoever is about to ask OpenCL for anything calls this first.
void check_opencl_after_fork();

// Python's types (errors.cpp).

/// "a float" or "a numpy.ndarray": what an object is, for messages.
std::string kind_of(nb::handle object);
/// Throws TypeError: "<what> is <wanted>, not a list".
[[noreturn]] void wrong_type(const char* what, const char* wanted, nb::handle got);
const Context& to_context(nb::handle context);
/// Whether an object is an int, or numpy's, and no array.
bool is_int(nb::handle object);

// Element types (dtypes.cpp).

/// The name in Python: "float32".
const char* dtype_name(DType dtype);
/// Of "float32", numpy.float32, numpy.dtype("f4") and their like; throws TypeError.
DType to_dtype(nb::handle dtype);

// numpy (arrays.cpp).

/// The C-ordered memory, in native byte order, with the values of a number, a list, an array or
/// whatever numpy.asarray takes; copied where they do not lie so already.
struct HostArray {
    nb::object owner;
    DType dtype = DType::f32;
    Shape shape;
    const void* data = nullptr;
};
/// Throws TypeError where the elements have no dtype of the library.
HostArray to_host_array(nb::handle values);

/// New memory on the context's device with the values, converted to `dtype` where one is given.
Tensor to_tensor(const Context& context, nb::handle values, std::optional<DType> dtype = {});
Tensor to_tensor(const Context& context, const HostArray& host, std::optional<DType> dtype = {});
/// Overwrites a tensor or view with values of its shape, converted to its dtype.
void copy_from(Tensor& tensor, nb::handle values);
/// A new numpy array with a copy of the values.
nb::object to_numpy(const Tensor& tensor);
/// ml_dtypes.bfloat16 where that is installed, else None: numpy has no such type.
nb::object bfloat16_type();
/// Copies the values into a numpy array of the tensor's shape and type.
void copy_to(const Tensor& tensor, nb::handle array);

/// The sizes in an int or a sequence of ints.
Shape to_shape(nb::handle sizes);
/// A tuple of ints.
nb::tuple to_tuple(const Shape& shape);

// Tensors without gaps (arithmetic.cpp).

/// The tensor, or a copy of a strided view without gaps, as operators want them. Permuted
/// dimensions are put in order on the device. The caller holds a ContextLock.
Tensor dense(const Tensor& tensor);
/// The same for permuted dimensions alone: what is copied to the host anyway may keep its gaps.
Tensor in_order(const Tensor& tensor);

}  // namespace dlprim::python
