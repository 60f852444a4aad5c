// SPDX-License-Identifier: MIT
// RunFolder: the folder of a training run, which belongs to one run at a time.
//
// A run holds a lock (flock) on the file run.lock in it, and removes that file when it ends. The
// system releases the lock of a process that was killed, so that a file which such a process left
// hinders nobody.
#pragma once

#include <string>
#include <vector>

namespace dlprim {

class RunFolder {
  public:
    /// Locks the folder if it exists, and removes temporary files that a killed run left there.
    /// Throws Error(io), which names the other run's process and host, if the folder is in use.
    /// `owns`: false for a process whose run another one of its processes writes down: then nothing
    /// is locked, made or removed.
    explicit RunFolder(std::string path, bool owns = true);
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    const std::string& path() const { return path_; }
    bool is_owner() const { return owns_; }
    std::string file(const std::string& name) const;
    /// Makes the folder if it does not exist, and locks it.
    void make();

    /// Names of files of earlier runs: checkpoints, model.h5, best.h5, metrics.csv, report.html and
    /// event files.
    std::vector<std::string> results() const;
    /// Removes them.
    void remove_results() const;

    /// A run's checkpoint among results().
    struct Checkpoint {
        std::string name;
        int epochs_done = 0;
        long long batches_done = 0;  ///< of the epoch after them
    };
    static std::string name_of(int epochs_done, long long batches_done);
    /// All of them, the earliest first.
    std::vector<Checkpoint> checkpoints() const;

  private:
    void lock();
    void remove_temporary_files() const;

    std::string path_, lock_file_;
    const bool owns_;
    int lock_ = -1;
};

}  // namespace dlprim
