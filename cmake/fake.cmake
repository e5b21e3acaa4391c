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
