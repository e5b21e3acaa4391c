/*
 * short_name.h - the function in a demangled C++ signature.
 *
 *	"void at::native::vectorized_elementwise_kernel<4, F>(int, F)"
 *	  -> "at::native::vectorized_elementwise_kernel"
 *
 * Without return type, template arguments, parameters and anonymous
 * namespaces. What is no signature ("ampere_sgemm_128x64_nn", "aten::add",
 * "loader: next batch") stays as it is. Private to present/.
 */
#pragma once

#include "base/buf.h"

/* Puts the short name at the end of `out`. */
void short_name(const char *name, struct buf *out);

/*
 * A call stack, innermost first, "cudaMalloc < make_buffers(int) < main (pipeline)", without
 * parameters and without those frames that say nothing about who called: allocators on the
 * way to the driver, functions without a name. What is no stack: its short name.
 */
void short_stack(const char *stack, struct buf *out);
