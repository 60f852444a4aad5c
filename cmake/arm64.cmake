# A toolchain file for 64-bit Arm: Debian's cross-compiler, libraries of the folder that the variable DLPRIM_SYSROOT names, and
# qemu-user to run programs. scripts/arm64.sh makes the folder and uses this file.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DLPRIM_SYSROOT)
if(NOT DLPRIM_SYSROOT)
    message(FATAL_ERROR "Give -DDLPRIM_SYSROOT=FOLDER, the folder of arm64 libraries; scripts/arm64.sh makes one")
endif()
set(CMAKE_SYSROOT ${DLPRIM_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${DLPRIM_SYSROOT})

# Programs such as protoc and Python are this machine's; all else is the folder's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DLPRIM_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${DLPRIM_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${DLPRIM_SYSROOT}/usr/share/pkgconfig)

# CMake asks HDF5's own compiler, which is this machine's, for the library; these are its answers.
set(HDF5_C_COMPILER_EXECUTABLE OFF CACHE FILEPATH "")
set(HDF5_ROOT ${DLPRIM_SYSROOT}/usr/lib/aarch64-linux-gnu/hdf5/serial CACHE PATH "")
