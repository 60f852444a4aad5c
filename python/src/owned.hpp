// SPDX-License-Identifier: MIT
// Nets and Solvers as Python holds them: made, called and destroyed while their context's lock is
// held.
#pragma once

#include "bind.hpp"

#include <memory>
#include <type_traits>

namespace dlprim::python {

template <typename T>
class Owned {
  public:
    using Object = T;

    /// `make()` returns a std::unique_ptr<T>. It is called with the lock held.
    template <typename Make>
    Owned(const Context& context, Make&& make) : context_(context) {
        const ContextLock lock(context_);
        object_ = make();
    }
    /// Another thread may be in the middle of a call on a net of the same context. When Python
    /// ends, that thread may hold the lock forever. Then the end of the process frees the memory.
    ~Owned() {
        try {
            if (is_ending()) {
                const ContextLock lock(context_, std::try_to_lock);
                if (lock.is_held()) object_.reset();
            } else {
                const ContextLock lock(context_);
                object_.reset();
            }
        } catch (const Error&) {
            // In a child of fork(), the device's memory belongs to the parent.
        }
        static_cast<void>(object_.release());
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    const Context& context() const { return context_; }
    /// The caller holds a ContextLock.
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

  private:
    Context context_;
    std::unique_ptr<T> object_;
};

/// Makes a method for Python of a member function of T. The method holds the lock.
template <typename T, typename Result, typename... Args>
auto locked(Result (T::*call)(Args...)) {
    return [call](const Owned<T>& self, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(self.context());
        return ((*self).*call)(args...);
    };
}
template <typename T, typename Result, typename... Args>
auto locked(Result (T::*call)(Args...) const) {
    return [call](const Owned<T>& self, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(self.context());
        return ((*self).*call)(args...);
    };
}

}  // namespace dlprim::python
