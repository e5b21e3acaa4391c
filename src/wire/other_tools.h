/*
 * other_tools.h - by what other profilers and debuggers of CUDA are known: beside
 * one of them we stay out of CUPTI. Freestanding, as segment.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Programs that start the one they look into; also with "-something" behind. */
static const char *const OTHER_TOOL_COMMANDS[] = { "ncu",          "nsys",     "nv-nsight-cu-cli",
						   "nvprof",       "cuda-gdb", "compute-sanitizer",
						   "cuda-memcheck" };

/* The name as /proc has it: cut after 15 bytes. */
static inline bool other_tool_is(const char *tool, const char *name)
{
	size_t len = 0;

	while (len < 15 && tool[len] && tool[len] == name[len])
		len++;
	if (len == 15)
		return true;
	return len && !tool[len] && (!name[len] || name[len] == '-' || name[len] == '.');
}

/* The tool that a command of this name is; NULL. */
static inline const char *other_tool_named(const char *name)
{
	for (size_t i = 0; i < sizeof(OTHER_TOOL_COMMANDS) / sizeof(OTHER_TOOL_COMMANDS[0]); i++) {
		if (other_tool_is(OTHER_TOOL_COMMANDS[i], name))
			return OTHER_TOOL_COMMANDS[i];
	}
	return NULL;
}
