/*
 * test_short_name.c - what is left of a signature, and of a stack of them, in a table.
 */
#include <criterion/criterion.h>

#include "rules/short_name.h"

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

Test(short_name, of_an_operator_has_its_sign)
{
	expect(short_name, "bool a::operator< <int>(a::B<int> const&, int)", "a::operator<");
	expect(short_name, "bool operator<(A, B)", "operator<");
	expect(short_name, "std::ostream& std::operator<< <char>(std::ostream&, char)",
	       "std::operator<<");
	expect(short_name, "bool a::operator<=<int>(int)", "a::operator<=");
	expect(short_name, "a::B<int>::operator->() const", "a::B::operator->");
	expect(short_name, "int a::B<(3 < 4)>::operator()<float>(float)", "a::B::operator()");
	expect(short_name, "void sort<&(a::operator<(A, B)), 4>(A*)", "sort");
	expect(short_name, "void copy<((n)<(4)), (m > 5), (p->q), A<B<int> > const>(A*)", "copy");
	expect(short_name, "my_operator<int>(int)", "my_operator");
}

Test(short_name, of_a_stack_has_whole_functions)
{
	expect(short_stack, "bool operator< <A>(A, A) < sort<(3 < 4)>(A*) < main (x)",
	       "operator< < sort < main (x)");
	expect(short_stack, "operator< < sort < main (x)", "operator< < sort < main (x)");
	expect(short_stack, "copy<(3 < 4)>(int)", "copy");
	expect(short_stack, "<listcomp> data.py:3 < <module> train.py:9",
	       "<listcomp> data.py:3 < <module> train.py:9");
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

/* Of frames without a name the libraries tell a little, if nothing else does. */
Test(short_name, a_stack_without_a_caller_says_through_which_libraries_it_came)
{
	expect(short_stack, "cudaMalloc < liba.so+0x1 < liba.so+0x2 < libb.so.6",
	       "cudaMalloc < liba.so < libb.so.6");
	expect(short_stack, "cudaMalloc < liba.so+0x1 < libb.so+0x2 < main", "cudaMalloc < main");
}

static void of_call(const char *stack, struct buf *out)
{
	short_stack_of_call(stack, "cudaStreamSynchronize", out);
}

/* As seen with the driver 580. */
Test(short_name, of_a_wait_begins_with_the_call_whatever_the_driver_does_below)
{
	expect(of_call,
	       "ioctl < libcuda.so.580.159.04 < libcuda.so.580.159.04 < cuStreamSynchronize < "
	       "libcudart_static_141dba5462e92d2cffd1abc474df476c510a3a8c < "
	       "cudaStreamSynchronize < fault(CUstream_st*, float*) < main",
	       "cudaStreamSynchronize < fault < main");
	expect(of_call,
	       "libcuda.so.580.159.04 < cuStreamSynchronize < job < cudaStreamSynchronize < "
	       "libstdc++.so.6.0.33 < libc.so.6 < libc.so.6",
	       "cudaStreamSynchronize < libstdc++.so.6.0.33 < libc.so.6");
	expect(of_call, "libcuda.so.580 < cuStreamSynchronize < wait() < main",
	       "cuStreamSynchronize < wait < main");
	expect(of_call, "poll < libcuda.so.580 < main", "poll < main");
	expect(of_call, "libcuda.so.580 < libcuda.so.580", "libcuda.so.580");
	expect(of_call, "", "");
}

Test(short_name, what_is_no_stack_is_a_name)
{
	expect(short_stack, "f(int)", "f");
	expect(short_stack, "main (pipeline)", "main (pipeline)");
	expect(short_stack, "", "");
	expect(short_stack, " < ", "");
}
