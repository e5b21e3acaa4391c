# Loaded into other people's processes: libsonde-inject.so by the driver, and
# libsonde-osrt.so by LD_PRELOAD where asked for. They see src/wire only, export
# what their .map says, and need an old glibc (tools/check-exports).
file(GLOB inject_sources CONFIGURE_DEPENDS inject/*.c)
list(FILTER inject_sources EXCLUDE REGEX "/osrt")
file(GLOB osrt_sources CONFIGURE_DEPENDS inject/osrt*.c)
list(APPEND osrt_sources inject/claim.c inject/hook.c inject/ring.c inject/texts.c)

function(guest target map)
	add_library(${target} MODULE ${ARGN})
	target_include_directories(${target} PRIVATE src ${CMAKE_SOURCE_DIR})
	target_compile_options(${target} PRIVATE -fvisibility=hidden -fPIC -fno-sanitize=all
		-ftls-model=initial-exec
		"SHELL:-include ${CMAKE_SOURCE_DIR}/inject/old_glibc.h")
	target_link_options(${target} PRIVATE -fno-sanitize=all
		-Wl,-z,defs,-z,now,-z,relro,-z,nodelete
		-Wl,--version-script=${CMAKE_SOURCE_DIR}/inject/${map})
	# Needed by name: on glibc before 2.34 the functions of old_glibc.h are there.
	foreach(old IN ITEMS libdl.so.2 libpthread.so.0)
		find_file(OLD_${old} NAMES ${old} PATHS /lib/${CMAKE_LIBRARY_ARCHITECTURE} /lib64 /lib)
		if(OLD_${old})
			target_link_options(${target} PRIVATE
				"SHELL:-Wl,--no-as-needed ${OLD_${old}} -Wl,--as-needed")
		endif()
	endforeach()
	set_target_properties(${target} PROPERTIES
		LINK_DEPENDS ${CMAKE_SOURCE_DIR}/inject/${map})
	install(TARGETS ${target} LIBRARY DESTINATION lib/sonde)
endfunction()

guest(sonde-inject inject.map ${inject_sources})
guest(sonde-osrt osrt.map ${osrt_sources})

# The start-up module of --torch-ops lies beside the libraries.
configure_file(inject/python/sitecustomize.py ${CMAKE_BINARY_DIR}/python/sitecustomize.py COPYONLY)
install(FILES inject/python/sitecustomize.py DESTINATION lib/sonde/python)
