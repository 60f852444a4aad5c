# dlprim_embed_page(OUTPUT): a rule that turns the parts of reports' pages in web/ (style, scripts, Chart.js) into one C++
# file holding them as raw strings, rebuilt when one of them changes.
function(dlprim_embed_page output)
    set(root ${CMAKE_SOURCE_DIR}/web)
    set(files ${root}/page.css ${root}/chartjs/chart.umd.js)
    # In the order in which they run.
    foreach(name page theme curves judged network times memory main)
        list(APPEND files ${root}/${name}.js)
    endforeach()
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_page_script.cmake
        DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_page_script.cmake
        COMMENT "Embedding the page of reports" VERBATIM)
endfunction()
