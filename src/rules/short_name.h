/*
 * short_name.h - the function in a demangled C++ signature.
 *
 *	"void at::native::vectorized_elementwise_kernel<4, F>(int, F)"
 *	  -> "at::native::vectorized_elementwise_kernel"
 *
 * Without return type, template arguments, parameters and anonymous
 * namespaces. What is no signature ("ampere_sgemm_128x64_nn", "aten::add",
 * "loader: next batch") stays as it is.
 */
#pragma once

#include "base/buf.h"

/* Puts the short name at the end of `out`. */
void short_name(const char *name, struct buf *out);

/*
 * A call stack, innermost first, "cudaMalloc < make_buffers(int) < main (pipeline)", without
 * parameters and without those frames that say nothing about who called: allocators on the
 * way to the driver, functions without a name. Where none is left but the innermost, the
 * libraries of those without a name follow, each once. What is no stack: its short name.
 */
void short_stack(const char *stack, struct buf *out);

/*
 * The same from the CUDA call `call` on outwards: what the driver does below it says nothing.
 * Where the call is not in it, from the outermost of CUDA's functions on, else all of it.
 */
void short_stack_of_call(const char *stack, const char *call, struct buf *out);
