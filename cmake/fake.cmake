# Puppets of NVIDIA's libraries (tests/fake). `old` is the same management
# library without the functions that drivers before R510 lack.
set(FAKE_DIR ${CMAKE_BINARY_DIR}/tests/fake)
function(puppet_nvml target folder)
	add_library(${target} SHARED EXCLUDE_FROM_ALL tests/fake/puppet_nvml.c
		tests/fake/puppet_script.c tests/fake/puppet_replay.c)
	target_include_directories(${target} PRIVATE tests)
	target_link_options(${target} PRIVATE ${ARGN})
	set_target_properties(${target} PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1
		LIBRARY_OUTPUT_DIRECTORY ${folder})
	add_dependencies(tests ${target})
endfunction()
puppet_nvml(puppet_nvml ${FAKE_DIR} -Wl,--version-script=${CMAKE_SOURCE_DIR}/tests/fake/nvml.map)
puppet_nvml(puppet_nvml_old ${FAKE_DIR}/old
	-Wl,--version-script=${CMAKE_SOURCE_DIR}/tests/fake/nvml_old.map)

# Records what a program asks the library: LD_AUDIT=.../librecord-nvml.so.
add_library(record_nvml MODULE EXCLUDE_FROM_ALL tests/fake/record_nvml.c)
target_include_directories(record_nvml PRIVATE tests)
set_target_properties(record_nvml PROPERTIES OUTPUT_NAME record-nvml
	LIBRARY_OUTPUT_DIRECTORY ${FAKE_DIR})
add_dependencies(tests record_nvml)

# Time that passes without waiting: LD_PRELOAD=.../libwarp.so, for ./bench.
add_library(warp MODULE EXCLUDE_FROM_ALL tests/fake/warp.c)
set_target_properties(warp PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${FAKE_DIR})

add_executable(collect_dump EXCLUDE_FROM_ALL tests/fake/collect_dump.c)
target_link_libraries(collect_dump PRIVATE collect)
add_dependencies(tests collect_dump)
# A sanitizer's runtime and an audit library do not live in one process.
if(NOT SONDE_SANITIZE)
	add_test(NAME nvml_record_replay COMMAND ${CMAKE_SOURCE_DIR}/tests/fake/check_replay.sh
		${FAKE_DIR} $<TARGET_FILE:collect_dump>)
endif()

add_library(fake_vgpu MODULE EXCLUDE_FROM_ALL tests/fake/vgpu.c)
set_target_properties(fake_vgpu PROPERTIES OUTPUT_NAME vgpu LIBRARY_OUTPUT_DIRECTORY ${FAKE_DIR})
target_compile_options(fake_vgpu PRIVATE -Wno-pedantic)
add_dependencies(tests fake_vgpu)

find_path(NVML_INCLUDE nvml.h PATHS /usr/local/cuda/include
	/usr/local/cuda/targets/x86_64-linux/include)
if(NVML_INCLUDE AND TARGET test_nvml_abi)
	target_include_directories(test_nvml_abi SYSTEM PRIVATE ${NVML_INCLUDE})
endif()
