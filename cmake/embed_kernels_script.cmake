# Run with -P: writes OUTPUT, a C++ table {path, text} of FILES, whose paths are relative to ROOT.
set(text "// Generated from kernels/. Do not edit.\n#include \"runtime/embedded_kernels.hpp\"\n\nnamespace dlprim {\nconst EmbeddedKernel embedded_kernels[] = {\n")
foreach(file IN LISTS FILES)
    file(RELATIVE_PATH path ${ROOT} ${file})
    file(READ ${file} body)
    string(APPEND text "{\"${path}\", R\"dlprim_cl(${body})dlprim_cl\"},\n")
endforeach()
string(APPEND text "{nullptr, nullptr}};\n}  // namespace dlprim\n")
file(WRITE ${OUTPUT} "${text}")
