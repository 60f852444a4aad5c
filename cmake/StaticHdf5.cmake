# DLPRIM_STATIC_HDF5, for wheels: HDF5 inside the shared library, with its symbols hidden. Debian's shared HDF5 brings
# libcurl and with it Kerberos, LDAP and four libraries of cryptography, 17 MB in all, for files on the web that dlprim
# never reads; and a program's other HDF5 (h5py has its own) would meet its symbols.
#
# Debian's static HDF5 is compiled for programs, whose code may address libc's variables directly, which a shared library
# may not: stdout and stderr. A copy of the archive names variables of our own in their place, which are set on loading.
function(dlprim_static_hdf5)
    list(GET HDF5_C_LIBRARIES 0 shared)
    get_filename_component(folder ${shared} DIRECTORY)
    find_library(hdf5_archive NAMES libhdf5.a HINTS ${folder} NO_CACHE REQUIRED)
    find_library(szip_archive NAMES libsz.a NO_CACHE REQUIRED)
    find_library(aec_archive NAMES libaec.a NO_CACHE REQUIRED)
    find_program(CMAKE_OBJCOPY objcopy REQUIRED)

    set(folder ${CMAKE_BINARY_DIR}/static_hdf5)
    file(MAKE_DIRECTORY ${folder})
    set(rename "")
    set(source "#include <stdio.h>\n")
    foreach(stream stdout stderr)
        list(APPEND rename --redefine-sym ${stream}=dlprim_hdf5_${stream})
        string(APPEND source "__attribute__((visibility(\"hidden\"))) FILE* dlprim_hdf5_${stream};\n"
            "__attribute__((constructor(101))) static void set_${stream}(void) { dlprim_hdf5_${stream} = ${stream}; }\n")
    endforeach()
    execute_process(COMMAND ${CMAKE_OBJCOPY} ${rename} ${hdf5_archive} ${folder}/libdlprim_hdf5.a COMMAND_ERROR_IS_FATAL ANY)
    file(CONFIGURE OUTPUT ${folder}/streams.c CONTENT "${source}")

    # What is inside asks for its notices to come along; the OpenCL loader and protobuf are added by auditwheel.
    foreach(package libhdf5-dev libaec-dev nlohmann-json3-dev opencl-c-headers ocl-icd-opencl-dev libprotobuf-dev libonnx-dev
        libhwy-dev libpng-dev libjpeg62-turbo-dev libjpeg-turbo8-dev)
        if(EXISTS /usr/share/doc/${package}/copyright)
            install(FILES /usr/share/doc/${package}/copyright DESTINATION licenses RENAME ${package}.txt COMPONENT python
                EXCLUDE_FROM_ALL)
        endif()
    endforeach()

    install(FILES ${CMAKE_SOURCE_DIR}/web/chartjs/LICENSE DESTINATION licenses RENAME chart.js.txt COMPONENT python EXCLUDE_FROM_ALL)

    target_sources(dlprim_core_shared PRIVATE ${folder}/streams.c)
    target_link_options(dlprim_core_shared PRIVATE -Wl,--exclude-libs,libdlprim_hdf5.a:libsz.a:libaec.a)
    target_link_libraries(dlprim_core_shared PRIVATE ${folder}/libdlprim_hdf5.a ${szip_archive} ${aec_archive}
        ${CMAKE_DL_LIBS} m)
endfunction()
