# Programs that libsonde-inject.so is loaded into (tests/inject), on puppets of
# the driver and of CUPTI: nothing of it is sanitized, as others' programs aren't.
set(HOST_DIR ${CMAKE_BINARY_DIR}/tests/inject)
function(plain target)
	target_include_directories(${target} PRIVATE tests src)
	target_compile_options(${target} PRIVATE -O2 -fno-sanitize=all -Wno-missing-prototypes)
	target_link_options(${target} PRIVATE -fno-sanitize=all)
	set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${HOST_DIR}
		RUNTIME_OUTPUT_DIRECTORY ${HOST_DIR} BUILD_RPATH ${HOST_DIR})
	add_dependencies(tests ${target})
endfunction()

add_library(puppet_cuda SHARED EXCLUDE_FROM_ALL tests/fake/puppet_cuda.c
	tests/fake/puppet_graph.c)
plain(puppet_cuda)
target_link_libraries(puppet_cuda PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(puppet_cuda PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1)

# `old`: without what sonde can do without, by its soname of 12.x.
function(puppet_cupti target number folder)
	add_library(${target} SHARED EXCLUDE_FROM_ALL tests/fake/puppet_cupti.c
		tests/fake/puppet_holes.c tests/fake/puppet_samples.c tests/fake/puppet_word.c)
	plain(${target})
	target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
	target_link_options(${target} PRIVATE ${ARGN})
	set_target_properties(${target} PROPERTIES OUTPUT_NAME cupti SUFFIX .so.${number}
		LIBRARY_OUTPUT_DIRECTORY ${folder})
endfunction()
puppet_cupti(puppet_cupti 13 ${HOST_DIR})
puppet_cupti(puppet_cupti_old 12 ${HOST_DIR}/old
	-Wl,--version-script=${CMAKE_SOURCE_DIR}/tests/fake/cupti_old.map)

# One that plays a log instead, and what writes such logs (tests/fake/cupti_log.h).
add_library(replay_cupti SHARED EXCLUDE_FROM_ALL tests/fake/replay_cupti.c
	tests/fake/replay_load.c tests/fake/replay_play.c tests/fake/puppet_word.c)
plain(replay_cupti)
target_include_directories(replay_cupti PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(replay_cupti PRIVATE Threads::Threads)
set_target_properties(replay_cupti PROPERTIES OUTPUT_NAME cupti SUFFIX .so.13
	LIBRARY_OUTPUT_DIRECTORY ${HOST_DIR}/replay)
add_library(record_cupti MODULE EXCLUDE_FROM_ALL tests/fake/record_cupti.c)
plain(record_cupti)
target_include_directories(record_cupti PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(record_cupti PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(record_cupti PROPERTIES OUTPUT_NAME record-cupti)

add_library(other_tool MODULE EXCLUDE_FROM_ALL tests/inject/other_tool.c)
plain(other_tool)

# PyTorch has libkineto's entry in one of its own.
add_library(torch_cpu MODULE EXCLUDE_FROM_ALL tests/inject/other_tool.c)
plain(torch_cpu)

add_library(asker MODULE EXCLUDE_FROM_ALL tests/inject/asker.c)
plain(asker)

find_path(NVTX_INCLUDE nvtx3/nvToolsExt.h PATHS /usr/local/cuda/include)
file(GLOB host_sources CONFIGURE_DEPENDS tests/inject/host*.c)
list(FILTER host_sources EXCLUDE REGEX "host_cupti\\.c$")
add_executable(host EXCLUDE_FROM_ALL ${host_sources})
plain(host)
target_link_libraries(host PRIVATE puppet_cuda Threads::Threads ${CMAKE_DL_LIBS})
if(NVTX_INCLUDE)
	target_include_directories(host SYSTEM PRIVATE ${NVTX_INCLUDE})
endif()
add_executable(host_cupti EXCLUDE_FROM_ALL tests/inject/host_cupti.c)
plain(host_cupti)
target_link_libraries(host_cupti PRIVATE puppet_cupti puppet_cuda)

# Waits in each call that libsonde-osrt.so knows; static, it is out of its reach.
add_executable(os_host EXCLUDE_FROM_ALL tests/inject/os_host.c)
plain(os_host)
target_link_libraries(os_host PRIVATE Threads::Threads)
add_executable(deny EXCLUDE_FROM_ALL tests/inject/deny.c)
plain(deny)
find_library(STATIC_C libc.a)
if(STATIC_C)
	add_executable(os_host_static EXCLUDE_FROM_ALL tests/inject/os_host.c)
	plain(os_host_static)
	target_link_options(os_host_static PRIVATE -static)
endif()

# tests/inject/check*.py name their cases.
function(host_tests script prefix)
	set(check ${CMAKE_SOURCE_DIR}/tests/inject/${script})
	execute_process(COMMAND ${PYTHON3} ${check} --list
		OUTPUT_VARIABLE cases OUTPUT_STRIP_TRAILING_WHITESPACE)
	string(REPLACE "\n" ";" cases "${cases}")
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${check})
	foreach(case ${cases})
		add_test(NAME ${prefix}_${case} COMMAND ${PYTHON3} ${check} $<TARGET_FILE:sonde>
			${HOST_DIR} ${case})
		set_tests_properties(${prefix}_${case} PROPERTIES SKIP_RETURN_CODE 77)
		# A sanitized sonde takes no preloaded library in front of the runtime.
		if(SONDE_SANITIZE AND case MATCHES "^(others_preload|nested)$")
			set_tests_properties(${prefix}_${case} PROPERTIES DISABLED ON)
		endif()
	endforeach()
endfunction()
if(PYTHON3 AND TARGET sonde)
	add_dependencies(tests sonde-inject sonde-osrt)
	host_tests(check.py inject)
	host_tests(check_osrt.py osrt)
	host_tests(check_windows.py windows)
	host_tests(check_maps.py maps)
	host_tests(check_replay.py replay)
	host_tests(check_recorded.py recorded)
endif()

# Spools that are too small, filled by a host that nobody takes from.
if(TARGET test_spool_live)
	target_compile_definitions(test_spool_live PRIVATE HOST_DIR="${HOST_DIR}"
		INJECT_LIBRARY="$<TARGET_FILE:sonde-inject>")
	add_dependencies(test_spool_live sonde-inject host puppet_cupti)
endif()
