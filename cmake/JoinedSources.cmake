# DLPRIM_JOINED_SOURCES: up to eight files of a folder, or of the operators' folders, are compiled as one, since headers are read and
# their templates compiled once for all of them. That saves nearly half of the library's time; the tests and the Python module take
# part, too. Files of a folder must then not define the same name in their unnamed namespaces. Two functions of one name are no error
# if their parameters differ, and a call may take the other file's. A file that forgets an #include may compile all the same, so builds
# without the option, scripts/tidy.sh among them, find that.

# Files of these folders have names that their neighbours have, too: a kernel's path, a class Forward.
set(DLPRIM_FOLDERS_APART collective/devices collective/exchange collective/hosts collective/processes ops/cast ops/conv2d/blocked
    ops/conv2d/matrix ops/conv2d/portable ops/embedding ops/matmul ops/scatter)

# The first of these is included again for each kind of processor, by its own name. The others have names of their own for the types of
# blocks, and compiler options of their own.
set(DLPRIM_FILES_APART engine/pointwise/host_vectors.cpp base/blocks.cpp engine/host_blocks.cpp)

#   dlprim_join_sources(TARGET FOLDER file...): the files of TARGET below FOLDER, in absolute paths.
function(dlprim_join_sources target root)
    if(NOT DLPRIM_JOINED_SOURCES)
        return()
    endif()
    foreach(source IN LISTS ARGN)
        file(RELATIVE_PATH name ${root} ${source})
        if(name IN_LIST DLPRIM_FILES_APART)
            continue()
        endif()
        get_filename_component(folder ${source} DIRECTORY)
        file(RELATIVE_PATH folder ${root} ${folder})
        if(folder IN_LIST DLPRIM_FOLDERS_APART)
            continue()
        endif()
        # Each operator's folder has a namespace of its own, and most are small.
        string(REGEX REPLACE "^ops/[^/]+$" "ops" folder ${folder})
        string(MAKE_C_IDENTIFIER ${folder} group)
        math(EXPR files_${group} "0${files_${group}} + 1")
        math(EXPR part "(${files_${group}} - 1) / 8")
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

#   dlprim_join_target(TARGET): all files of TARGET in their order, whose folder is one.
function(dlprim_join_target target)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${DLPRIM_JOINED_SOURCES} UNITY_BUILD_BATCH_SIZE 8)
endfunction()
