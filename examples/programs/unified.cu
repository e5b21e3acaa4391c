// Unified memory: pages that move because somebody touches them, and pages that are brought in time.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)
__global__ void add_one(float *x, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) x[i] += 1; }
static int prefetch(float *x, size_t bytes, int device) {
#if CUDART_VERSION >= 13000
    cudaMemLocation to = {cudaMemLocationTypeDevice, device};
    return cudaMemPrefetchAsync(x, bytes, to, 0, 0);
#else
    return cudaMemPrefetchAsync(x, bytes, device, 0);
#endif
}
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 5; size_t n = 1 << 24; float *x; double sum = 0;
    CK(cudaMallocManaged(&x, n * 4));
    for (int r = 0; r < rounds; r++) {
        for (size_t i = 0; i < n; i++) x[i] = (float)r;             // the CPU's pages: 64 MiB
        add_one<<<1024, 256>>>(x, n); CK(cudaDeviceSynchronize());  // each page is a fault of the GPU
        for (size_t i = 0; i < n; i += 1024) sum += x[i];           // and one of the CPU to get it back
        for (size_t i = 0; i < n; i++) x[i] = (float)r;
        if (prefetch(x, n * 4, 0)) puts("no prefetch here");        // asked for in time: no faults
        add_one<<<1024, 256>>>(x, n); CK(cudaDeviceSynchronize());
    }
    printf("%d rounds, %d launches, sum %.0f\n", rounds, 2 * rounds, sum);
    return 0;
}
