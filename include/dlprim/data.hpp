// SPDX-License-Identifier: MIT
// What a training configuration reads: counts, shapes, ranges, broken files, and a contact sheet of
// augmented pictures. It is what the command dlprim_data shows. docs/data.md describes the data
// sets.
//
// Results are plain values in host memory, which belong to the caller. A TrainingData may be used
// by one thread at a time; its functions read files on several threads and return when they are
// done.
#pragma once

#include <dlprim/image.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// A part of the data: what trains, or what tests.
struct DataSummary {
    std::string role;    ///< "train" or "test"
    std::string source;  ///< the file or folder, in quotes
    std::int64_t examples = 0;

    /// "label": the number of a class; "values": numbers; "mask": a class for each pixel.
    std::string target;
    std::int64_t target_size = 1;  ///< numbers of "values"
    /// Names of the classes; those without a name are called by their number.
    std::vector<std::string> classes;
    /// By class, examples with this label, or pixels of it in the masks that were read.
    std::vector<std::int64_t> counts;

    Shape input;  ///< what the net gets of an example: [channels, height, width], or [features...]
    bool pictures = false;
    /// Of the pictures that were read, before they are resized or cropped.
    std::int64_t least_height = 0, most_height = 0, least_width = 0, most_width = 0;

    std::int64_t read = 0;       ///< examples that were read for what follows
    double least = 0, most = 0;  ///< of all values; pixels are from 0 to 1
    /// By channel of pictures or by feature, before normalising.
    std::vector<double> mean, deviation;
    std::int64_t broken = 0;            ///< of these, the examples that cannot be read
    std::vector<std::string> remarks;   ///< sentences, such as on files that are passed over
    std::vector<std::string> messages;  ///< why not, of the first 100
};

/// Pictures side by side, as training gets them.
struct ContactSheet {
    Image image;
    std::vector<std::string> rows;  ///< what the pictures of each row are, from the top
    std::int64_t columns = 0;
};

/// How fast the host makes batches.
struct DataSpeed {
    std::int64_t examples = 0;
    double seconds = 0;
};

class TrainingData {
  public:
    /// Opens the data of a configuration file as dlprim_train does. Throws Error, which names the
    /// file, for what is wrong in the configuration or in the data sets.
    explicit TrainingData(const std::string& config);
    ~TrainingData();
    TrainingData(TrainingData&&) noexcept;
    TrainingData& operator=(TrainingData&&) noexcept;

    /// Reads up to `most` examples of each part, chosen by the configuration's seed (0: all).
    /// Examples that cannot be read are counted, not thrown.
    std::vector<DataSummary> summaries(std::int64_t most = 2000) const;

    /// A row for each class, or rows of any examples if the targets are no labels; at most `rows`
    /// rows of `columns` examples, as the first epoch gets them. Masks are laid over their pictures
    /// as colours. Throws Error(unsupported) if inputs are no pictures.
    ContactSheet contact_sheet(std::int64_t rows = 16, std::int64_t columns = 10) const;

    /// Makes batches of the training set for about this many seconds, as training does but without
    /// a device, and counts their examples. The first two batches, for which files and memory are
    /// cold, do not count.
    DataSpeed speed(double seconds) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
