// SPDX-License-Identifier: MIT
// Data sets of pictures in folders: PNG, JPEG, PPM and PGM files, by the contents of the files.
// Names of files and folders that begin with a dot are passed over, and so are files whose names do
// not end as those of pictures. Links to folders are followed; one that leads back is an error.
#pragma once

#include "train/dataset.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// A folder for each class, with pictures in it at any depth. Classes are numbered in the order of
/// their names. With `classes` these are the names, in their order, and another folder is an error.
/// Throws Error, if there are fewer than two classes or one without a picture.
std::unique_ptr<Dataset> open_class_folder(const std::string& folder, int channels,
                                           const std::vector<std::string>& classes = {});

/// A folder of pictures and one of masks, which have the same names but for their endings. A mask
/// is a picture of class numbers; see decode_mask(). Throws Error for a picture without a mask.
std::unique_ptr<Dataset> open_mask_folder(const std::string& images, const std::string& masks,
                                          int channels, const std::vector<std::string>& classes);

}  // namespace dlprim
