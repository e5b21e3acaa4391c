/*
 * Which calls of CUPTI's PC sampling can be made while other threads launch? Each case
 * runs by itself and ends within 6 s; one that does not is said to hang.
 *
 *   nvcc -O2 -std=c++17 -arch=native -o pc_switch pc_switch.cu -lcupti -lcuda
 *   ./pc_switch disable|stop|getdata THREADS     by a thread that launches nothing
 *   ./pc_switch contexts disable|drain           contexts come and go beside a launching one
 *   ./pc_switch late                             begun by another thread, after first launches
 *   ./pc_switch reset                            the device is reset, nothing was disabled
 *   ./pc_switch exit disable|drain               main ends while others launch
 *   ./pc_switch devices disable|drain            one card is used and reset, the other launches
 *   ./pc_switch total                            what drains leave to be had by Disable, and when they come
 *   ./pc_switch full                             what drains give once the memory was full: PERIOD=8 SPAN=1000 MIB=8
 *   ./pc_switch records THREADS                  kinds and calls on and off instead
 *
 * SPAN: how long CUPTI's own threads sleep, in ms (100); PERIOD: 2^PERIOD cycles (20);
 * MIB: device memory for samples (128).
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<bool> over{false};
static std::atomic<long> launched{0};
static std::atomic<const char *> stage{"begin"};
static size_t reasons;
static uint32_t start_stop;
static std::string what;

static void check(CUptiResult result, const char *call)
{
	if (result)
		fprintf(stderr, "  %s: CUPTI %d\n", call, (int)result);
}
#define CHECK(call) check((call), #call)

static uint32_t number(const char *name, uint32_t otherwise)
{
	const char *text = getenv(name);

	return text ? (uint32_t)atoi(text) : otherwise;
}

struct sampled {
	CUcontext context;
	CUpti_PCSamplingData data[2]; /* given at configuration; for drains */
};

static void make(CUpti_PCSamplingData *data)
{
	data->size = sizeof(*data);
	data->collectNumPcs = 2048;
	data->pPcData = (CUpti_PCSamplingPCData *)calloc(2048, sizeof(*data->pPcData));
	for (int i = 0; i < 2048; i++) {
		data->pPcData[i].size = sizeof(*data->pPcData);
		data->pPcData[i].stallReason =
			(CUpti_PCSamplingStallReason *)calloc(reasons, sizeof(CUpti_PCSamplingStallReason));
	}
}

static void enable(struct sampled *at)
{
	CUpti_PCSamplingEnableParams params = {};

	params.size = CUpti_PCSamplingEnableParamsSize;
	params.ctx = at->context;
	CHECK(cuptiPCSamplingEnable(&params));
	if (!reasons) {
		CUpti_PCSamplingGetNumStallReasonsParams number = {};

		number.size = CUpti_PCSamplingGetNumStallReasonsParamsSize;
		number.ctx = at->context;
		number.numStallReasons = &reasons;
		CHECK(cuptiPCSamplingGetNumStallReasons(&number));
	}
	if (!at->data[0].size) {
		make(&at->data[0]);
		make(&at->data[1]);
	}
	CUpti_PCSamplingConfigurationInfo set[8] = {};
	set[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
	set[0].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
	set[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT;
	set[1].attributeData.outputDataFormatData.outputDataFormat = CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED;
	set[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
	set[2].attributeData.samplingDataBufferData.samplingDataBuffer = &at->data[0];
	set[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
	set[3].attributeData.scratchBufferSizeData.scratchBufferSize = 4 << 20;
	set[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
	set[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = (size_t)number("MIB", 128) << 20;
	set[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
	set[5].attributeData.samplingPeriodData.samplingPeriod = number("PERIOD", 20);
	set[6].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
	set[6].attributeData.enableStartStopControlData.enableStartStopControl = start_stop;
	CUpti_PCSamplingConfigurationInfoParams configure = {};
	configure.size = CUpti_PCSamplingConfigurationInfoParamsSize;
	configure.ctx = at->context;
	set[7].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN;
	set[7].attributeData.workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan = number("SPAN", 100);
	configure.numAttributes = 8;
	configure.pPCSamplingConfigurationInfo = set;
	CHECK(cuptiPCSamplingSetConfigurationAttribute(&configure));
}

static void disable(struct sampled *at)
{
	CUpti_PCSamplingDisableParams params = {};

	params.size = CUpti_PCSamplingDisableParamsSize;
	params.ctx = at->context;
	CHECK(cuptiPCSamplingDisable(&params));
}

static uint64_t drain(struct sampled *at)
{
	uint64_t total = 0;

	do {
		CUpti_PCSamplingGetDataParams params = {};

		params.size = CUpti_PCSamplingGetDataParamsSize;
		params.ctx = at->context;
		params.pcSamplingData = &at->data[1];
		CHECK(cuptiPCSamplingGetData(&params));
		total += at->data[1].totalSamples;
	} while (at->data[1].remainingNumPcs);
	return total;
}

static void range(struct sampled *at, bool on)
{
	CUpti_PCSamplingStartParams begin = {};
	CUpti_PCSamplingStopParams end = {};

	begin.size = CUpti_PCSamplingStartParamsSize;
	end.size = CUpti_PCSamplingStopParamsSize;
	begin.ctx = end.ctx = at->context;
	if (on)
		CHECK(cuptiPCSamplingStart(&begin));
	else
		CHECK(cuptiPCSamplingStop(&end));
}

__global__ void tiny(float *x)
{
	x[threadIdx.x] += 1;
}

__global__ void spin(float *x, int rounds)
{
	float y = x[threadIdx.x];

	for (int i = 0; i < rounds; i++)
		y = y * 1.0001f + 1;
	x[threadIdx.x] = y;
}

/* Launches with what programs do beside them. */
static void work(int id)
{
	float *x, *y;
	cudaStream_t stream, other;
	cudaEvent_t event;

	cudaMalloc((void **)&x, 4096);
	cudaStreamCreate(&stream);
	for (long i = id; !over; i++) {
		tiny<<<1, 32, 0, stream>>>(x);
		launched++;
		if (i % 1000 == 999) {
			cudaMalloc((void **)&y, 1 << 20);
			cudaMemcpyAsync(y, x, 4096, cudaMemcpyDeviceToDevice, stream);
			cudaEventCreate(&event);
			cudaEventRecord(event, stream);
			cudaEventSynchronize(event);
			cudaEventDestroy(event);
			cudaStreamCreate(&other);
			cudaStreamDestroy(other);
			cudaFree(y);
		}
	}
	cudaStreamSynchronize(stream);
}

static std::vector<std::thread> begin(int threads)
{
	std::vector<std::thread> all;

	for (int i = 0; i < threads; i++)
		all.emplace_back(work, i);
	usleep(300000);
	return all;
}

static void finish(std::vector<std::thread> &all)
{
	stage = "end";
	over = true;
	for (auto &thread : all)
		thread.join();
}

static double rate(void)
{
	long before = launched;

	usleep(300000);
	return (double)(launched - before) / 300;
}

static struct sampled first;
static bool drains;

static void at_exit(void)
{
	stage = drains ? "drain at exit" : "disable at exit";
	if (drains)
		drain(&first);
	else
		disable(&first);
	printf("%s: well, %ld launches\n", what.c_str(), launched.load());
	fflush(stdout);
}

static void sample_once(struct sampled *mine)
{
	float *x;

	stage = "enable";
	enable(mine);
	cudaMalloc((void **)&x, 4096);
	spin<<<132, 128>>>(x, 10000);
	cudaDeviceSynchronize();
	stage = drains ? "drain" : "disable";
	if (drains)
		drain(mine);
	else
		disable(mine);
}

static void contexts(void)
{
	CUdevice device;
	int count = 0;

	cuCtxGetDevice(&device);
	for (; count < 20; count++) {
		struct sampled *mine = (struct sampled *)calloc(1, sizeof(*mine));

		stage = "create";
		cuCtxCreate(&mine->context, NULL, 0, device);
		sample_once(mine);
		stage = "destroy";
		cuCtxDestroy(mine->context);
	}
	cuCtxSetCurrent(first.context);
}

static void records(void)
{
	static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
						    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
						    CUPTI_ACTIVITY_KIND_MEMORY2 };

	CHECK(cuptiActivityRegisterCallbacks(
		[](uint8_t **buffer, size_t *bytes, size_t *most) {
			*buffer = (uint8_t *)malloc(1 << 20);
			*bytes = 1 << 20;
			*most = 0;
		},
		[](CUcontext, uint32_t, uint8_t *buffer, size_t, size_t) { free(buffer); }));
	for (int i = 0; i < 200; i++) {
		for (CUpti_ActivityKind kind : kinds) {
			stage = i & 1 ? "disable kind" : "enable kind";
			CHECK(i & 1 ? cuptiActivityDisable(kind) : cuptiActivityEnable(kind));
		}
		stage = "flush";
		CHECK(cuptiActivityFlushAll(i % 3 == 0));
		usleep(5000);
	}
}

static void devices(void)
{
	for (int i = 0; i < 10; i++) {
		struct sampled *mine = (struct sampled *)calloc(1, sizeof(*mine));

		stage = "set up";
		cudaSetDevice(1);
		cudaFree(0);
		cuCtxGetCurrent(&mine->context);
		sample_once(mine);
		stage = "reset";
		cudaDeviceReset();
	}
	cudaSetDevice(0);
}

static int total(void)
{
	float *x;
	uint64_t sum = 0, rest;

	cudaMalloc((void **)&x, 4096);
	for (int i = 0; i < 4000; i++) {
		spin<<<132, 128>>>(x, 100000);
		if (i % 1000 == 999) {
			cudaDeviceSynchronize();
			sum += drain(&first);
			printf("total: %llu after %d\n", (unsigned long long)sum, i + 1);
		}
	}
	for (int i = 0; i < 60; i++) {
		uint64_t more = drain(&first);

		sum += more;
		if (more)
			printf("total: %llu more after %d ms\n", (unsigned long long)more, i * 5);
		usleep(5000);
	}
	first.data[0].totalSamples = 0;
	stage = "disable";
	disable(&first);
	rest = first.data[0].totalSamples;
	printf("total: well, %llu samples by drains, %llu more by Disable\n", (unsigned long long)sum,
	       (unsigned long long)rest);
	return 0;
}

/* Runs of the same result of GetData, beside kernels for half of the time. */
static int full(void)
{
	CUpti_PCSamplingGetDataParams params = {};
	CUptiResult last = CUPTI_SUCCESS;
	uint64_t samples = 0;
	float *x;
	int count = 0;

	params.size = CUpti_PCSamplingGetDataParamsSize;
	params.ctx = first.context;
	params.pcSamplingData = &first.data[1];
	cudaMalloc((void **)&x, 4096);
	for (int i = 0; i < 160; i++) {
		if (i < 80)
			spin<<<1320, 128>>>(x, 100000);
		stage = "getdata";
		CUptiResult result = i < 20 ? CUPTI_SUCCESS : cuptiPCSamplingGetData(&params);
		if (result != last || i == 159) {
			printf("full: CUPTI %d %d times to %d ms, %llu samples\n", last, count, i * 25,
			       (unsigned long long)samples);
			count = 0;
			samples = 0;
		}
		last = result;
		count++;
		samples += result ? 0 : first.data[1].totalSamples;
		usleep(25000);
	}
	printf("full: well\n");
	return 0;
}

int main(int argc, char **argv)
{
	CUpti_SubscriberHandle subscriber;
	std::vector<std::thread> all;
	int threads = argc > 2 ? atoi(argv[2]) : 0;

	if (argc < 2)
		return 2;
	what = argv[1] + std::string(argc > 2 ? std::string(" ") + argv[2] : "");
	drains = argc > 2 && !strcmp(argv[2], "drain");
	start_stop = !strcmp(argv[1], "stop");
	std::thread([] {
		sleep(6);
		printf("%s: HANGS at %s, %ld launches\n", what.c_str(), stage.load(), launched.load());
		fflush(stdout);
		_exit(1);
	}).detach();
	cudaFree(0);
	cuCtxGetCurrent(&first.context);
	CHECK(cuptiSubscribe(&subscriber, [](void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}, NULL));
	if (strcmp(argv[1], "late") && strcmp(argv[1], "records"))
		enable(&first);
	if (!strcmp(argv[1], "total"))
		return total();
	if (!strcmp(argv[1], "full"))
		return full();
	if (!strcmp(argv[1], "reset")) {
		all = begin(1);
		finish(all);
		drain(&first);
		stage = "reset";
		cudaError_t error = cudaDeviceReset();
		float *x = NULL;
		cudaMalloc((void **)&x, 4096);
		tiny<<<1, 32>>>(x);
		printf("reset: well: %d, then %d\n", error, cudaDeviceSynchronize());
		return 0;
	}
	all = begin(threads > 0 ? threads : 2);
	double on = rate(), off = 0, again = 0;
	if (!strcmp(argv[1], "exit")) {
		for (auto &thread : all)
			thread.detach();
		atexit(at_exit);
		return 0;
	}
	if (!strcmp(argv[1], "contexts")) {
		contexts();
	} else if (!strcmp(argv[1], "devices")) {
		devices();
	} else if (!strcmp(argv[1], "late")) {
		stage = "enable";
		enable(&first);
		again = rate();
		drain(&first);
	} else if (!strcmp(argv[1], "records")) {
		records();
	} else if (!strcmp(argv[1], "getdata")) {
		stage = "getdata";
		for (int i = 0; i < 100; i++, usleep(10000))
			drain(&first);
	} else {
		if (start_stop) {
			stage = "start";
			range(&first, true);
			on = rate();
		}
		stage = "off";
		if (start_stop)
			range(&first, false);
		else
			disable(&first);
		off = rate();
		stage = "on again";
		if (start_stop)
			range(&first, true);
		else
			enable(&first);
		again = rate();
		for (int i = 0; start_stop && i < 40; i++) {
			stage = "off, on, off";
			range(&first, i & 1);
			usleep(20000);
		}
		drain(&first);
	}
	finish(all);
	printf("%s: well, %ld launches; thousands a second %.0f, off %.0f, on again %.0f\n", what.c_str(),
	       launched.load(), on, off, again);
	fflush(stdout);
	_exit(0);
}
