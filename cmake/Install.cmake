# What `cmake --install` puts in place: headers, both libraries, a CMake package and a pkg-config file.
#   find_package(dlprim)      gives dlprim::core (shared) and dlprim::core_static
#   pkg-config --libs dlprim  the shared library; --static also what the static one needs
include(CMakePackageConfigHelpers)

set(dlprim_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dlprim)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/dlprim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development FILES_MATCHING PATTERN "*.hpp")
set_target_properties(dlprim_core_shared PROPERTIES EXPORT_NAME core)
set(kinds shared)
if(DLPRIM_BUILD_STATIC)
    set_target_properties(dlprim_core_static PROPERTIES EXPORT_NAME core_static)
    list(APPEND kinds static)
endif()
# Two exports: who links the shared library needs none of the static one's dependencies.
foreach(kind IN LISTS kinds)
    install(TARGETS dlprim_core_${kind} EXPORT dlprim_${kind}_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    install(EXPORT dlprim_${kind}_targets FILE dlprim-${kind}-targets.cmake NAMESPACE dlprim::
        DESTINATION ${dlprim_package_dir} COMPONENT development)
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/dlprim-config.cmake.in
    ${CMAKE_BINARY_DIR}/dlprim-config.cmake INSTALL_DESTINATION ${dlprim_package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dlprim-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dlprim-config.cmake ${CMAKE_BINARY_DIR}/dlprim-config-version.cmake
    DESTINATION ${dlprim_package_dir} COMPONENT development)

# In the .pc file, which lies in LIBDIR/pkgconfig. Folders given as absolute paths stay what they are.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(dlprim_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH dlprim_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" dlprim_pc_prefix "\${pcfiledir}/${dlprim_pc_prefix}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(dlprim_pc_include "${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(dlprim_pc_include "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(dlprim_pc_private "-lOpenCL -pthread")
foreach(library IN LISTS HDF5_C_LIBRARIES)
    if(IS_ABSOLUTE ${library})
        string(APPEND dlprim_pc_private " ${library}")
    elseif(NOT library MATCHES "^-")
        string(APPEND dlprim_pc_private " -l${library}")
    endif()
endforeach()
if(dlprim_has_onnx)
    string(APPEND dlprim_pc_private " -lprotobuf-lite")
endif()
if(PNG_FOUND)
    string(APPEND dlprim_pc_private " -lpng")
endif()
if(JPEG_FOUND)
    string(APPEND dlprim_pc_private " -ljpeg")
endif()
if(ICU_FOUND)
    string(APPEND dlprim_pc_private " -licui18n -licuuc -licudata")
endif()
if(ZLIB_FOUND)
    string(APPEND dlprim_pc_private " -lz")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/dlprim.pc.in ${CMAKE_BINARY_DIR}/dlprim.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/dlprim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
