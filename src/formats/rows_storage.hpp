// SPDX-License-Identifier: MIT
// How Rows are stored: for the readers of formats in this folder.
#pragma once

#include "base/input_file.hpp"
#include "formats/rows.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// `data`: all elements in host byte order.
std::unique_ptr<Rows> rows_in_memory(std::string name, const Shape& shape, DType dtype,
                                     std::vector<std::byte> data);
/// The elements lie at `position` of the file in host byte order; the caller has checked that the
/// file is long enough.
std::unique_ptr<Rows> rows_in_file(std::shared_ptr<const InputFile> file, std::string name,
                                   std::uint64_t position, const Shape& shape, DType dtype);

}  // namespace dlprim
