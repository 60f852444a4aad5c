# DLPRIM_JOINED_SOURCES: up to eight files of a folder, or sixteen of the operators' folders, are compiled as one, since headers are
# read and their templates compiled once for all of them. That saves nearly half of the library's time; the tests and the Python
# module take part, too. Files of a folder must then not define the same name in their unnamed namespaces. Two functions of one name
# are no error if their parameters differ, and a call may take the other file's. A file that forgets an #include may compile all the
# same, so builds without the option, scripts/tidy.sh among them, find that.

# Files of these folders have names that their neighbours have, too: a kernel's path, a class Forward. Those of the second list are
# joined with files of the others, one of each folder.
set(DLPRIM_FOLDERS_APART collective/hosts ops/conv2d/blocked ops/conv2d/matrix ops/conv2d/portable)
set(DLPRIM_FOLDERS_MIXED collective/devices collective/exchange collective/processes ops/cast ops/embedding ops/matmul
    ops/scatter)

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
        set(most 8)
        set(joined ${folder})
        if(folder IN_LIST DLPRIM_FOLDERS_MIXED)
            set(most 1)
            set(joined mixed)
        elseif(folder MATCHES "^ops/[^/]+$")
            # Each operator's folder has a namespace of its own, and most are small.
            set(most 16)
            set(folder ops)
            set(joined ops)
        endif()
        string(MAKE_C_IDENTIFIER ${joined} group)
        math(EXPR files_${folder} "0${files_${folder}} + 1")
        math(EXPR part "(${files_${folder}} - 1) / ${most}")
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

#   dlprim_join_target(TARGET): all files of TARGET in their order, whose folder is one.
function(dlprim_join_target target)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${DLPRIM_JOINED_SOURCES} UNITY_BUILD_BATCH_SIZE 8)
endfunction()
