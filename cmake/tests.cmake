# tests/unit/test_X.c is a Criterion program on top of every layer but main.
find_library(CRITERION_LIB criterion)
function(unit_test source)
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} EXCLUDE_FROM_ALL ${source})
	target_include_directories(${name} PRIVATE src tests)
	target_compile_definitions(${name} PRIVATE SOURCE_DIR="${CMAKE_SOURCE_DIR}"
		FAKE_DIR="${CMAKE_BINARY_DIR}/tests/fake")
	if(TARGET cmd)
		target_link_libraries(${name} PRIVATE cmd)
	endif()
	target_link_libraries(${name} PRIVATE serve ${CRITERION_LIB})
	add_dependencies(tests ${name})
	add_test(NAME ${name} COMMAND ${name})
endfunction()

add_custom_target(tests ALL)
if(CRITERION_LIB)
	file(GLOB unit_sources CONFIGURE_DEPENDS tests/unit/test_*.c)
	foreach(source ${unit_sources})
		unit_test(${source})
	endforeach()
endif()

# Our declarations of NVIDIA's structs against the real ones, where those are.
find_path(CUPTI_INCLUDE cupti_pmsampling.h PATHS /usr/local/cuda/include
	/usr/local/cuda/extras/CUPTI/include)
if(CUPTI_INCLUDE AND TARGET test_probe_layout)
	target_include_directories(test_probe_layout SYSTEM PRIVATE ${CUPTI_INCLUDE})
	target_include_directories(test_cupti_abi SYSTEM PRIVATE ${CUPTI_INCLUDE})
endif()
if(TARGET test_pc_sampling)
	target_sources(test_pc_sampling PRIVATE inject/pcgovern.c inject/pcsamp.c)
	target_include_directories(test_pc_sampling PRIVATE ${CMAKE_SOURCE_DIR})
endif()
if(TARGET test_cupti_abi)
	target_include_directories(test_cupti_abi PRIVATE ${CMAKE_SOURCE_DIR})
endif()
find_path(NVML_INCLUDE nvml.h PATHS /usr/local/cuda/include)
if(NVML_INCLUDE AND TARGET test_nvml_abi)
	target_include_directories(test_nvml_abi SYSTEM PRIVATE ${NVML_INCLUDE})
endif()

# The same of CPython's.
find_path(PYTHON_INCLUDE internal/pycore_frame.h PATHS /usr/include/python3.11
	/usr/include/python3.12 /usr/include/python3.13)
if(PYTHON_INCLUDE AND TARGET test_python_layout)
	target_include_directories(test_python_layout SYSTEM PRIVATE ${PYTHON_INCLUDE}
		${PYTHON_INCLUDE}/internal)
endif()

# tests/fuzz/fuzz_X.c defines LLVMFuzzerTestOneInput; without libFuzzer it
# replays its corpus in tests/fuzz/corpus/X as a test.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
	get_filename_component(name ${source} NAME_WE)
	string(REPLACE "fuzz_" "" corpus ${name})
	if(SONDE_FUZZ)
		add_executable(${name} ${source})
		target_link_options(${name} PRIVATE -fsanitize=fuzzer)
	else()
		add_executable(${name} ${source} tests/fuzz/replay.c)
		add_test(NAME ${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
	endif()
	target_link_libraries(${name} PRIVATE serve)
	target_include_directories(${name} PRIVATE src tests)
endforeach()
include(cmake/cli.cmake OPTIONAL)
include(cmake/present.cmake OPTIONAL)
include(cmake/threads.cmake)

# The nvidia-smi readers against values computed elsewhere, where those lie.
find_program(PYTHON3 python3)
add_executable(smi_dump EXCLUDE_FROM_ALL tests/read/smi_dump.c)
target_link_libraries(smi_dump PRIVATE read)
add_dependencies(tests smi_dump)
if(PYTHON3)
	add_test(NAME read_smi_public COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/read/check_smi.py
		$<TARGET_FILE:smi_dump>)
endif()
include(cmake/serve.cmake)
include(cmake/fake.cmake)
include(cmake/host.cmake)
