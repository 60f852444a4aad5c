# The target dlprim_torch_core: the library with its public headers. See the head of torch/CMakeLists.txt for the three
# ways in which it is found.
add_library(dlprim_torch_core INTERFACE)
set(repository ${CMAKE_CURRENT_SOURCE_DIR}/..)
set(dlprim_torch_own_core "")

if(NOT DLPRIM_TORCH_LIBRARY)
    find_package(dlprim CONFIG QUIET)
endif()
if(DLPRIM_TORCH_LIBRARY)
    target_include_directories(dlprim_torch_core INTERFACE ${repository}/include)
    target_link_libraries(dlprim_torch_core INTERFACE ${DLPRIM_TORCH_LIBRARY})
elseif(dlprim_FOUND)
    message(STATUS "dlprim ${dlprim_VERSION} of ${dlprim_DIR}")
    target_link_libraries(dlprim_torch_core INTERFACE dlprim::core)
elseif(EXISTS ${repository}/src/CMakeLists.txt)
    # A build of its own, since the library's CMake files take their folder for the top. SKBUILD leaves out the links
    # that a wheel cannot store.
    include(ExternalProject)
    set(dlprim_torch_own_core ${CMAKE_CURRENT_BINARY_DIR}/dlprim/src/libdlprim_core.so)
    ExternalProject_Add(dlprim_torch_build_core SOURCE_DIR ${repository} BINARY_DIR ${CMAKE_CURRENT_BINARY_DIR}/dlprim
        CMAKE_ARGS -DSKBUILD=ON -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DDLPRIM_BUILD_TESTS=OFF -DDLPRIM_BUILD_TOOLS=OFF
            -DDLPRIM_BUILD_EXAMPLES=OFF -DDLPRIM_BUILD_STATIC=OFF
        BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target dlprim_core_shared
        BUILD_BYPRODUCTS ${dlprim_torch_own_core} BUILD_ALWAYS ON INSTALL_COMMAND "")
    add_dependencies(dlprim_torch_core dlprim_torch_build_core)
    target_include_directories(dlprim_torch_core INTERFACE ${repository}/include)
    target_link_libraries(dlprim_torch_core INTERFACE ${dlprim_torch_own_core})
else()
    message(FATAL_ERROR "There is no dlprim: set dlprim_DIR to the folder of an installed one's dlprim-config.cmake")
endif()

# A library that was built with this package goes with it.
function(dlprim_torch_install_core)
    if(dlprim_torch_own_core)
        install(FILES ${dlprim_torch_own_core} DESTINATION . COMPONENT torch)
    endif()
endfunction()
