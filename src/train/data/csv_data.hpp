// SPDX-License-Identifier: MIT
// A data set in a CSV file with a line of names: features are columns of numbers, and the target is
// a column of classes or one or several columns of numbers. The file is held in memory.
#pragma once

#include "train/dataset.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

struct CsvOptions {
    std::vector<std::string> labels;    ///< names of the target's columns
    std::vector<std::string> features;  ///< names of the others that are read; none: all
    bool label_is_value = false;        ///< the target is numbers, not a class
    char separator = ',';
    /// Names of classes. Without them, a column of whole numbers from 0 on holds numbers of
    /// classes, and of another column each text is a class, numbered in the order of the texts.
    std::vector<std::string> classes;
    bool one_class = false;  ///< whether one class alone will do, as in a test set
};

/// A row with a field that is no number, or with a label that is missing, is an example that cannot
/// be read; its error names line and column. Throws Error for a table without rows or columns that
/// are wanted.
std::unique_ptr<Dataset> open_csv(const std::string& path, const CsvOptions& options);

/// The names of the features of a data set that open_csv() made.
const std::vector<std::string>& csv_features(const Dataset& data);

}  // namespace dlprim
