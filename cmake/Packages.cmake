# Debian packages, which `cpack -G DEB` makes in a build folder of the prefix /usr (scripts/release.sh does all of it):
#   libdlprim<SOVERSION>  the shared library and what it starts
#   libdlprim-dev         headers, static library, CMake package, pkg-config file
#   dlprim-tools          the commands
# What each depends on is found by dpkg-shlibdeps.
set(DLPRIM_MAINTAINER "" CACHE STRING "Name and address of who makes the packages, as in 'A. Person <person@host>'")
set(maintainer "${DLPRIM_MAINTAINER}")
if(NOT maintainer)
    set(maintainer "The DLPrimitives authors <dlprim@localhost>")
endif()
set(library_package libdlprim${DLPRIM_SOVERSION})
set(development_package libdlprim-dev)
set(tools_package dlprim-tools)

set(CPACK_PACKAGE_NAME dlprim)
set(CPACK_PACKAGE_VENDOR "The DLPrimitives authors")
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library development)
if(DLPRIM_BUILD_TOOLS)
    list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/src)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(full_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(what "DLPrimitives trains and runs neural networks on any device with OpenCL, and on
the host where there is none. A network is a JSON file and its weights are an
HDF5 file, or both are an ONNX model.
.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "deep learning on OpenCL (shared library)\n${what}
This package has the shared library, and the program by which it compiles
kernels.")


# Programs find the library once ldconfig has run.
file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${development_package})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${full_version})")
# What programs need that link the static library.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "ocl-icd-opencl-dev, libhdf5-dev, zlib1g-dev, libpng-dev, libjpeg-dev, libicu-dev, libprotobuf-dev, cmake, pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "deep learning on OpenCL (development files)\n${what}
This package has headers, the static library, a CMake package and a pkg-config
file.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ${tools_package})
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library_package} (= ${full_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "deep learning on OpenCL (commands)\n${what}
This package has the commands that train, run, time and tune networks, look at
devices, and classify images.")

# What each package says of its licenses, and its last change. What is compiled in asks for that: libraries of headers,
# ONNX's schema, and Chart.js in reports.
file(READ ${CMAKE_SOURCE_DIR}/LICENSE notice)
string(PREPEND notice "DLPrimitives has this license:\n\n")
file(READ ${CMAKE_SOURCE_DIR}/web/chartjs/LICENSE text)
string(APPEND notice "\n\nChart.js, which draws the charts of reports, has this license:\n\n${text}")
foreach(package nlohmann-json3-dev libcli11-dev opencl-c-headers libonnx-dev libhwy-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)
        file(READ /usr/share/doc/${package}/copyright text)
        string(APPEND notice "\n\nCompiled in are files of Debian's package ${package}, of which Debian says:\n\n${text}")
    endif()
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/debian)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/debian/copyright CONTENT "@notice@" @ONLY)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where it is set
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/debian/changelog CONTENT
"dlprim (${full_version}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}; CHANGELOG.md in its source lists the changes.

 -- ${maintainer}  ${date}
")
find_program(GZIP_PROGRAM gzip)
if(GZIP_PROGRAM)
    execute_process(COMMAND ${GZIP_PROGRAM} -9 -n -c ${CMAKE_BINARY_DIR}/debian/changelog
        OUTPUT_FILE ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz)
endif()
# Other installations have no use for them.
if(DLPRIM_DEBIAN)
    foreach(component library development tools)
        install(FILES ${CMAKE_BINARY_DIR}/debian/copyright ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${${component}_package} COMPONENT ${component})
    endforeach()
endif()
include(CPack)
