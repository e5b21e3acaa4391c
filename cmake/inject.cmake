# libsonde-inject.so: loaded into other people's processes. It sees src/wire only,
# exports two names, and needs an old glibc (tools/check-exports).
file(GLOB inject_sources CONFIGURE_DEPENDS inject/*.c)
add_library(sonde-inject MODULE ${inject_sources})
target_include_directories(sonde-inject PRIVATE src ${CMAKE_SOURCE_DIR})
target_compile_options(sonde-inject PRIVATE -fvisibility=hidden -fPIC -fno-sanitize=all
	-ftls-model=initial-exec
	"SHELL:-include ${CMAKE_SOURCE_DIR}/inject/old_glibc.h")
target_link_options(sonde-inject PRIVATE -fno-sanitize=all
	-Wl,-z,defs,-z,now,-z,relro,-z,nodelete
	-Wl,--version-script=${CMAKE_SOURCE_DIR}/inject/inject.map)
# Needed by name: on glibc before 2.34 the functions of old_glibc.h are there.
foreach(old IN ITEMS libdl.so.2 libpthread.so.0)
	find_file(OLD_${old} NAMES ${old} PATHS /lib/${CMAKE_LIBRARY_ARCHITECTURE} /lib64 /lib)
	if(OLD_${old})
		target_link_options(sonde-inject PRIVATE
			"SHELL:-Wl,--no-as-needed ${OLD_${old}} -Wl,--as-needed")
	endif()
endforeach()
set_target_properties(sonde-inject PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/inject/inject.map)
install(TARGETS sonde-inject LIBRARY DESTINATION lib/sonde)
