/*
 * test_short_name.c - what is left of a signature, and of a stack of them, in a table.
 */
#include <criterion/criterion.h>

#include "present/short_name.h"

static void expect(void (*shorten)(const char *, struct buf *), const char *name, const char *want)
{
	struct buf out = { 0 };

	shorten(name, &out);
	cr_assert_str_eq(out.at ? out.at : "", want, "%s: %s", name, out.at);
	buf_done(&out);
}

Test(short_name, is_the_function_of_a_signature)
{
	expect(short_name, "void at::native::kernel<4, F<int>>(int, F)", "at::native::kernel");
	expect(short_name, "(anonymous namespace)::work(float*)", "work");
	expect(short_name, "ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn");
	expect(short_name, "loader: next batch", "loader: next batch");
}

Test(short_name, of_a_stack_is_who_called_and_where)
{
	expect(short_stack, "cudaMalloc < make_buffers(int, char**) < main (pipeline)",
	       "cudaMalloc < make_buffers < main (pipeline)");
	expect(short_stack,
	       "c10::cuda::CUDACachingAllocator::Native::malloc(void**, CUstream_st*) < "
	       "at::detail::empty_cuda(c10::ArrayRef<long>) < "
	       "bool at::cuda::blas::gemm<float, float>(bool) < "
	       "at::native::(anonymous namespace)::addmm(at::Tensor&) [clone .isra.0] (libt.so)",
	       "at::cuda::blas::gemm < at::native::addmm (libt.so)");
	expect(short_stack, "libcublas.so.13+0x5c385b < cublasCreate_v2", "cublasCreate_v2");
}

Test(short_name, a_stack_of_allocators_alone_keeps_its_last_and_its_library)
{
	expect(short_stack,
	       "c10::cuda::CUDACachingAllocator::get() < at::detail::empty_cuda(long) (libt.so)",
	       "at::detail::empty_cuda (libt.so)");
	expect(short_stack, "liba.so+0x1 < libb.so+0x2", "libb.so+0x2");
}

Test(short_name, what_is_no_stack_is_a_name)
{
	expect(short_stack, "f(int)", "f");
	expect(short_stack, "main (pipeline)", "main (pipeline)");
	expect(short_stack, "", "");
	expect(short_stack, " < ", "");
}
