// SPDX-License-Identifier: MIT
// Nets and Solvers as Python holds them: made, called and destroyed while the lock of their context
// is held, or the locks of their contexts.
#pragma once

#include "bind.hpp"

#include <filesystem>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlprim::python {

template <typename T>
class Owned {
  public:
    using Object = T;

    /// `make()` returns a std::unique_ptr<T>, or of a class that derives from T. It is called with
    /// the lock held.
    template <typename Make>
    Owned(const std::vector<Context>& contexts, Make&& make) : contexts_(contexts) {
        const ContextLock lock(contexts_);
        object_ = make();
    }
    ~Owned() {
        try {
            release();
        } catch (const Error&) {
            // In a child of fork(), the devices' memory belongs to the parent.
        }
        if (object_) new (std::nothrow) std::shared_ptr<T>(std::move(object_));  // never released
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    const std::vector<Context>& contexts() const { return contexts_; }
    /// The caller holds a ContextLock.
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

  private:
    /// Another thread may be in the middle of a call on a net of the same context. When Python
    /// ends, that thread may hold the lock forever. Then the end of the process frees the memory.
    void release() {
        if (!is_ending()) {
            const ContextLock lock(contexts_);
            object_.reset();
        } else if (contexts_.size() == 1) {
            const ContextLock lock(contexts_.front(), std::try_to_lock);
            if (lock.is_held()) object_.reset();
        }
    }

    std::vector<Context> contexts_;
    std::shared_ptr<T> object_;
};

/// Makes a method for Python of a member function of T. The method holds the lock.
template <typename T, typename Result, typename... Args>
auto locked(Result (T::*call)(Args...)) {
    return [call](const Owned<T>& self, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(self.contexts());
        return ((*self).*call)(args...);
    };
}
template <typename T, typename Result, typename... Args>
auto locked(Result (T::*call)(Args...) const) {
    return [call](const Owned<T>& self, std::decay_t<Args>... args) -> Result {
        const ContextLock lock(self.contexts());
        return ((*self).*call)(args...);
    };
}

/// The same of one that takes a file's path first.
template <typename T, typename Result, typename... Args>
auto locked_file(Result (T::*call)(const std::string&, Args...)) {
    return [call](const Owned<T>& self, const std::filesystem::path& path,
                  std::decay_t<Args>... args) -> Result {
        const ContextLock lock(self.contexts());
        return ((*self).*call)(path.string(), args...);
    };
}

/// The same of one whose result `convert` makes into what Python gets.
template <auto convert, typename T, typename Result>
auto locked_as(Result (T::*call)(const std::string&) const) {
    return [call](const Owned<T>& self, const std::string& name) {
        return convert(locked(call)(self, name));
    };
}

}  // namespace dlprim::python
