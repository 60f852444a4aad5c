# The target dlprim_torch_torch: headers and libraries of the torch that Python_EXECUTABLE imports. find_package(Torch)
# is not used: with a CUDA build of torch it wants the CUDA toolkit, which this package does not need.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${CMAKE_COMMAND} -E env TORCH_DEVICE_BACKEND_AUTOLOAD=0 ${Python_EXECUTABLE} -c
    "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__.split('+')[0], int(torch.compiled_with_cxx11_abi()), sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} cannot import torch: install it there, or name another Python by -DPython_EXECUTABLE")
endif()
list(GET found 0 torch_folder)
list(GET found 1 torch_version)
list(GET found 2 torch_abi)
message(STATUS "torch ${torch_version} of ${torch_folder}")

add_library(dlprim_torch_torch INTERFACE)
# As system headers, whose warnings are not ours.
target_include_directories(dlprim_torch_torch SYSTEM INTERFACE ${torch_folder}/include
    ${torch_folder}/include/torch/csrc/api/include)
target_compile_definitions(dlprim_torch_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${torch_abi})
target_link_libraries(dlprim_torch_torch INTERFACE ${torch_folder}/lib/libtorch_python.so ${torch_folder}/lib/libtorch_cpu.so
    ${torch_folder}/lib/libc10.so)
# Where the libraries lie is torch's to say: they are loaded already when the module is.
set(CMAKE_SKIP_INSTALL_RPATH OFF)
