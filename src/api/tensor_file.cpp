// SPDX-License-Identifier: MIT
// load_tensors, save_tensors.
#include <dlprim/tensor_file.hpp>

#include "formats/hdf5_file.hpp"

namespace dlprim {

std::map<std::string, HostTensor> load_tensors(const std::string& path) {
    const Hdf5Reader file(path);
    std::map<std::string, HostTensor> tensors;
    for (const Hdf5Dataset& dataset : file.datasets())
        tensors[dataset.name] = {dataset.shape, dataset.dtype, file.read(dataset.name)};
    return tensors;
}

void save_tensors(const std::string& path, const std::map<std::string, HostTensor>& tensors) {
    Hdf5Writer file(path);
    for (const auto& [name, tensor] : tensors) file.write(name, tensor.shape, tensor.dtype, tensor.data.data());
    file.commit();
}

}  // namespace dlprim
