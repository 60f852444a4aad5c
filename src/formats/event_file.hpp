// SPDX-License-Identifier: MIT
// EventFile: a file of TensorBoard's scalars. Records have TFRecord's frame (length, masked CRC-32C
// of the length, bytes, masked CRC-32C of the bytes); each holds an Event in protobuf's encoding,
// of which a few fields are enough here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class EventFile {
  public:
    /// Makes events.out.tfevents.SECONDS.HOST.PID in the folder. Events of the folder's earlier
    /// files count up to `first_step`: TensorBoard drops later ones, which a run repeats that goes
    /// on from there. Throws Error(io).
    EventFile(const std::string& folder, std::int64_t first_step);
    ~EventFile();
    EventFile(const EventFile&) = delete;
    EventFile& operator=(const EventFile&) = delete;

    /// Appends a record with values by tag. Throws Error(io).
    void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& values);

  private:
    void append(const std::string& event);

    std::string path_;
    int descriptor_ = -1;
};

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(const std::string& bytes);

}  // namespace dlprim
