/*
 * facts.h - what the analyses found, for rules and presenters.
 *
 * Everything a report says comes from here. Times are ns, on the session
 * clock. Texts are string ids of the session (session_text) or constants.
 * FACT_UNKNOWN in an integer, NAN in a double: not measured; `have_*` where a
 * struct is optional. Formulas and definitions: doc/analysis.md; sources are
 * named beside each. All memory hangs on the facts: facts_free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/own_cost.h"
#include "analyze/fault_facts.h"
#include "analyze/memory_facts.h"
#include "analyze/page_faults.h"
#include "analyze/stream_waits.h"
#include "analyze/wait_facts.h"
#include "base/err.h"
#include "base/interval.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/vec.h"
#include "model/metric.h"
#include "model/session.h"

#define FACT_UNKNOWN INT64_MIN

struct store;
struct timeline;

enum grade { GRADE_NONE, GRADE_LOW, GRADE_MEDIUM, GRADE_HIGH };
const char *grade_name(enum grade grade); /* "none", "low", "medium", "high" */

/* Why a device was idle: each idle ns has exactly one. X(id, name, what) */
#define IDLE_LIST(X)                                                                        \
	X(HOST_LATE, "host_late", "nothing was queued: the host was busy elsewhere")        \
	X(SYNC_BLOCKED, "sync_blocked", "the host sat in a synchronising call")             \
	X(LAUNCH_RATE, "launch_rate", "launches came, but slower than the kernels ran")     \
	X(DEPENDENCY, "dependency", "work was queued, waiting for another stream or event") \
	X(SETUP, "setup", "modules were loaded, code compiled, a context made")             \
	X(PEER, "peer", "waiting for another rank")                                         \
	X(UNATTRIBUTED, "unattributed", "the recording does not say")

enum idle_cause {
#define X(id, name, what) IDLE_##id,
	IDLE_LIST(X)
#undef X
		IDLE_COUNT
};
const char *idle_name(enum idle_cause cause);

/* What the launching thread did meanwhile. */
enum activity_kind {
	ACTIVITY_UNKNOWN,
	ACTIVITY_CALL,
	ACTIVITY_OP,
	ACTIVITY_RANGE,
	ACTIVITY_PYTHON
};

/* X(id, name): the part of a training or inference step. */
#define PHASE_LIST(X)             \
	X(FORWARD, "forward")     \
	X(BACKWARD, "backward")   \
	X(OPTIMIZER, "optimizer") \
	X(LOADER, "loader")       \
	X(READBACK, "readback")   \
	X(OTHER, "other")

enum phase {
#define X(id, name) PHASE_##id,
	PHASE_LIST(X)
#undef X
		PHASE_COUNT
};
const char *phase_name(enum phase phase);

struct during {
	enum activity_kind kind;
	uint32_t name;  /* the innermost thing that was open */
	uint32_t range; /* the innermost range of the user's round it; 0 none */
	enum phase phase;
	int64_t ns;
};

struct idle_fact {
	enum idle_cause cause;
	int64_t ns;
	int64_t count;
	int64_t longest_ns, longest_at_ns;
	VEC(struct during) during; /* by ns, longest first; parts of ns, may cover less */
	/* Faults and changes of the clock in the longest gap, in facts' arena. */
	VEC(const char *) board;
	int64_t upload_ns, upload_count; /* of ns and of the gaps: those that an upload ended */
	int64_t turnaround_ns, turnaround_count; /* those from a short kernel to the next, queued */
	const char *thread_state; /* of the session: what the launching thread was at in most
				     looks that fell into it, "waiting" for several ways of
				     it; NULL: too few looks, or none stands out */
	int64_t thread_looks, thread_state_looks; /* in all; of them in that state */
	int64_t thread_ns, thread_state_ns;       /* instead of looks, where context switches were
						     recorded: known time in all; of it in that
						     state; 0: by looks */
	/* Strings, 0: too few seen, or none stands out: Python's innermost function with its most
	 * frequent line, "collate data.py:41"; the function on a core. Looks in all; in it. */
	uint32_t python, cpu;
	int64_t python_looks, python_function_looks, cpu_samples, cpu_function_samples;
	bool cpu_is_python; /* they are the same function */
};

/* What a process does once, before it runs steadily. X(id, name) */
#define SETUP_LIST(X)         \
	X(NONE, "none")       \
	X(JIT, "jit")         \
	X(LOAD, "load")       \
	X(CONTEXT, "context") \
	X(LAUNCH, "launch")   \
	X(MEMORY, "memory")   \
	X(BUSY, "busy")

enum setup_kind {
#define X(id, name) SETUP_##id,
	SETUP_LIST(X)
#undef X
		SETUP_COUNT
};
const char *setup_name(enum setup_kind kind);

/* The start that the steady part leaves out: from the begin of the window. */
struct setup_fact {
	int64_t start_ns, ns;
	int64_t part_ns[SETUP_COUNT]; /* a union each; an instant counts once */
	int64_t other_ns;             /* of no known purpose: the host's own work */
};

/* A device after its set-up; times as those of the whole. */
struct steady_fact {
	bool has; /* the set-up is long enough to be left out; else nothing holds */
	int64_t start_ns, span_ns, busy_ns, idle_ns, kernel_ns; /* span: as of the device */
	int64_t kernel_count;
	int64_t launch_sum_ns;
	int64_t waiting_ns, collective_ns; /* as of the device; FACT_UNKNOWN, 0 */
	struct idle_fact idle[IDLE_COUNT];
};

/* min, max, and the rest over the samples of one metric. */
struct metric_stats {
	int64_t count;
	double min, mean, median, p95, max, last;
};

enum job_character {
	CHARACTER_UNKNOWN,
	CHARACTER_IDLE,
	CHARACTER_STEADY,
	CHARACTER_PERIODIC,
	CHARACTER_BURSTY
};

/* What held a clock down, as the driver counts it. X(id, name) */
#define LIMIT_LIST(X)                 \
	X(POWER, "power")             \
	X(SW_THERMAL, "sw_thermal")   \
	X(HW_THERMAL, "hw_thermal")   \
	X(POWER_BRAKE, "power_brake") \
	X(SYNC_BOOST, "sync_boost")

enum limit {
#define X(id, name) LIMIT_##id,
	LIMIT_LIST(X)
#undef X
		LIMIT_COUNT
};
const char *limit_name(enum limit limit);

/* How the time under a limit was told, the best first. */
enum ledger_means {
	LEDGER_UNKNOWN,
	LEDGER_COUNTER, /* the driver's counter of time */
	LEDGER_SHARE,   /* its share of each interval */
	LEDGER_SAMPLED, /* it was in force at the instant of a sample */
};

/* The throttle ledger: how long each limit was in force, and what it cost. */
struct ledger_row {
	enum ledger_means means; /* LEDGER_UNKNOWN: nobody said; the rest is nothing then */
	int64_t ns;              /* in force */
	int64_t clocked_ns;      /* of that with a known clock: the next two are of it */
	int64_t lost_ns;         /* the time the lost clocks would have taken at the reference */
	double mhz_lost;         /* mean below the reference; NAN */
};

struct ledger {
	int64_t observed_ns;  /* in which some limit was known to be in force or not */
	double reference_mhz; /* as of episodes; NAN */
	int64_t resets;       /* times the counters began again */
	struct ledger_row row[LIMIT_COUNT];
};

struct system_facts {
	uint32_t source; /* the file with most samples of the device: samples, times,
			    interval, character and growth are of it; a metric that it
			    lacks comes from the file that has most of it */
	int64_t samples;
	int64_t samples_outside;   /* more of a run, while nothing was recorded: left out */
	int64_t first_ns, last_ns; /* session or source time, see has_clock */
	bool has_clock;            /* the files had time stamps */
	int64_t interval_ns;       /* FACT_UNKNOWN */
	bool interval_assumed;     /* the tool's default, not in the file */
	struct metric_stats metric[METRIC_COUNT]; /* count 0: not measured */
	enum job_character character;
	int64_t period_ns;         /* FACT_UNKNOWN unless periodic */
	int64_t busy_samples;      /* with util_pct of 10 and more */
	double mem_growth_bytes_s; /* NAN unless it grew steadily */
	double mem_growth_bytes;   /* over the recording; NAN */
	/* Samples with util_pct of 95 and more, and medians in them; NAN. */
	int64_t high_util_samples;
	double high_util_power_share; /* power over the limit in force */
	double high_util_sm_active_pct;
	/* Medians over samples with util_pct of 50 and more; NAN. */
	int64_t load_samples;
	double load_sm_mhz, load_power_w, load_temp_c;
	struct ledger ledger;
};

/* Clock lost to a limit. */
struct episode {
	const char *reason; /* "power", "thermal", "power_brake", "sync_boost", "unknown" */
	int64_t start_ns, end_ns;
	uint32_t source;
	int64_t first_sample, last_sample; /* numbers of the device's samples in that source,
					      from 0 */
	bool by_plateau;           /* no limit was reported: told by a clock that fell under load */
	double mhz_lost;           /* highest clock seen (or max clock) minus median in it; NAN */
	double mhz_before, mhz_in; /* that maximum, that median */
	double power_w;            /* median in it; NAN */
	double temp_c;             /* highest in it; NAN */
};

enum { PROCESS_SLOTS = 12 };

struct process_fact {
	uint32_t device;
	uint32_t process;
	int64_t samples;
	double sm_pct_mean, sm_pct_max; /* NAN */
	double mem_bytes;               /* last; NAN */
	double mem_bytes_first;         /* NAN */
	double mem_growth_bytes_s;      /* NAN unless it grew steadily */
	double mem_growth_bytes;
	/* Rounds in which it used the SMs while another process did, and did not. */
	int64_t shared_rounds, solo_rounds;
	double sm_pct_shared, sm_pct_solo; /* means in them; NAN */
	/* Over time: from its first sample to the end of its last, the time that its
	 * SM use amounts to (use x interval), the share of that in the same of all
	 * processes on the device, and the mean use in equal parts of the device's
	 * recording, NAN where it has no sample. */
	int64_t first_ns, last_ns; /* FACT_UNKNOWN */
	int64_t sm_ns;             /* FACT_UNKNOWN */
	double sm_share;           /* 0..1; NAN */
	double slot_pct[PROCESS_SLOTS];
};

/* A card that differs from the others of its kind in the same recording. */
struct twin_fact {
	uint32_t device;
	enum metric metric;
	bool under_load; /* in samples with util_pct of 50 and more; else over all */
	double value;    /* its median */
	double median;   /* of the medians of the cards of its kind */
	double spread;   /* median distance from that, as a standard deviation */
	int64_t twins;   /* cards of its kind, it included */
};

/* A kernel that ran while a limit held the clock down. */
struct held_kernel {
	uint32_t key;
	int64_t count, ns;
	double slower; /* mean then / mean otherwise; NAN too few of either */
};

struct device_fact {
	uint32_t device;   /* index into session.devices */
	bool has_timeline; /* ops were recorded: the next block holds */
	int64_t window_start_ns;
	int64_t window_ns, before_ns, after_ns;
	int64_t paused_ns; /* between first and last op, with nothing busy: recording was off */
	int64_t span_ns;   /* from first to last op, without paused_ns */
	VEC(struct interval) pauses; /* all that there are, in order */
	int64_t busy_ns, working_ns, idle_ns;
	int64_t waiting_ns;               /* FACT_UNKNOWN: ranks were not compared */
	int64_t kernel_ns, kernel_sum_ns; /* union, sum */
	int64_t copy_ns, compute_idle_ns;
	int64_t copy_overlap_ns;       /* copies under kernels */
	int64_t stream_overlap_ns;     /* time with two streams or more busy */
	int64_t collective_ns;         /* union of collective kernels */
	int64_t collective_hidden_ns;  /* of that under other kernels */
	int64_t collective_suspect_ns; /* beyond the quickest of the same collective: waiting,
					  perhaps, for a late rank */
	int64_t compared_count;        /* collectives that were compared with the other ranks' */
	int64_t compared_last; /* of those, this rank came last, by more than the clocks' error */
	int64_t late_p50_ns;   /* how long after the first rank it came; FACT_UNKNOWN */
	int64_t kernel_count, memcpy_count, memset_count, graph_count;
	int64_t memcpy_bytes;
	int64_t stream_count;
	double coverage;         /* kernels with their launch found / all */
	int64_t unmatched_ops;   /* kernels without a launch in the recording */
	int64_t launched_before; /* of those, launched before the window by all signs */
	struct idle_fact idle[IDLE_COUNT];
	struct steady_fact steady;
	struct setup_fact setup;            /* with steady.has */
	int64_t delay_p50_ns, delay_p95_ns; /* kernel start - end of its launch call, 0 and more */
	int64_t host_wait_ns; /* in its span some thread waited for a device; FACT_UNKNOWN */
	int64_t queued_p50_ns, queued_p95_ns; /* in the driver's queue; FACT_UNKNOWN */
	int64_t queued_count;                 /* kernels that this is known of */
	int64_t queue_max;                    /* launched, not yet started; FACT_UNKNOWN */
	double queue_mean;                    /* over the span */
	int64_t page_faults, page_fault_ns;   /* of unified memory; the time of all kinds as one */
	int64_t small_kernels, small_kernel_ns; /* shorter than SMALL_KERNEL_NS */
	int64_t kernel_p50_ns;
	int64_t launch_count;                 /* launch calls matched to this device */
	int64_t launch_sum_ns, launch_p50_ns; /* host time in launch calls; gap between them: */
	int64_t launch_gap_p50_ns; /* start of a launch call to start of the next, same thread */
	bool has_system;
	struct system_facts system;
	VEC(struct episode) episodes;
	VEC(struct held_kernel) held; /* with most time in episodes, longest first */
	int64_t process_rounds;       /* samplings in which some compute process used the SMs */
	int64_t shared_rounds;        /* of those, two and more did */
};

extern const int64_t SMALL_KERNEL_NS;

/* What a verdict on a device speaks of: its steady part where set-up is left
 * out, else all of it. */
struct judged {
	bool steady;
	const struct idle_fact *idle; /* by cause */
	int64_t span_ns, busy_ns, idle_ns, kernel_ns, kernel_count, launch_sum_ns;
	int64_t waiting_ns, collective_ns;
};
struct judged device_judged(const struct device_fact *device);

/* X(id, name): what binds a kernel (design 7, research in doc/bound.md). */
#define BOUND_LIST(X)               \
	X(UNKNOWN, "unknown")       \
	X(COMPUTE, "compute")       \
	X(DRAM, "memory:dram")      \
	X(L2, "memory:l2")          \
	X(L1, "memory:l1")          \
	X(LATENCY, "latency")       \
	X(LAUNCH, "launch")         \
	X(SMALL_GRID, "small_grid") \
	X(TAIL, "tail")

enum bound_class {
#define X(id, name) BOUND_##id,
	BOUND_LIST(X)
#undef X
};
const char *bound_name(enum bound_class bound);

struct number {
	const char *metric; /* NVIDIA's name, verbatim */
	double value;
	const char *unit;
};

struct bound_fact {
	enum bound_class bound;
	const char *unit; /* "dram", "lts", "fma", "barrier", ...; "" none */
	enum grade grade;
	enum bound_class runner_up;
	const char *runner_up_unit;
	const char *next;           /* the measurement that would raise the grade; "" none */
	VEC(struct number) numbers; /* those that decided, first the most telling */
	VEC(const char *) notes;    /* "small grid: 68 blocks on 132 SMs" */
};

struct stall_share {
	const char *reason; /* "long_scoreboard" */
	double share;       /* of issue-stalled or sampled warps, 0..1 */
};

/* Fractions and ratios for the kernel rules; NAN: not measured. Formulas: bound.c. */
struct kernel_counters {
	double duration_ns, sm_pct, memory_pct, dram_pct, l2_pct, l1_pct, issue_pct;
	double achieved_occupancy_pct, theoretical_occupancy_pct;
	const char *occupancy_limiter; /* "registers", "shared memory", "blocks", "warps"; NULL */
	double sectors_per_request_load, sectors_per_request_store;
	double ideal_sectors_load, ideal_sectors_store;
	double excess_sector_share;     /* of global sectors, more than ideal; 0..1 */
	double bank_conflict_share;     /* of shared wavefronts; 0..1 */
	double local_share;             /* local of L1 sectors; 0..1 */
	double threads_per_instruction; /* of 32 */
	double l1_hit_pct, l2_hit_pct;
	double waves, blocks, sms;
	double active_share;  /* SM active cycles avg / elapsed max; 0..1 */
	double slice_max_pct; /* the busiest L2 slice */
	double slice_avg_pct; /* their mean */
	double atomic_share;  /* atomics and reductions of L2 requests; 0..1 */
	double fp64_pct, xu_pct, fma_pct, alu_pct, tensor_pct, lsu_pct; /* pipes */
	double warp_latency_cycles;                                     /* cycles an issue */
	double dram_bytes, l2_bytes, l1_bytes;                          /* moved in all */
	double shared_reread;      /* bytes read from shared memory / brought into the SMs */
	double fp32_unfused_share; /* FP32 instructions that fusing could save; 0..0.5 */
};

struct kernel_fact {
	uint32_t key;                                   /* index into session.keys */
	uint32_t device;                                /* index into session.devices */
	int64_t count, sum_ns, mean_ns, min_ns, max_ns; /* launches in the timeline */
	double share;                                   /* of the device's kernel_sum_ns */
	double coverage;                                /* launches found / count */
	bool collective;
	double mean_cycles, sm_mhz; /* by the sampled SM clock; NAN */
	int64_t launch_idle_ns;     /* idle time before its launches that is IDLE_LAUNCH_RATE */
	bool has_bound;             /* by counters, or bound by launches in a timeline */
	struct bound_fact bound;
	/* with counters: */
	int64_t counter_launches;
	bool has_counters;
	struct kernel_counters counters;
	VEC(struct stall_share) stalls; /* largest first */
	int64_t stall_samples;          /* PC samples behind them; 0: counters */
	/* The reason that most PC samples name, "not_selected" among them: it was ready and
	 * another warp went first. NULL: they are too few. */
	const char *top_stall;
	bool sure_stall;                 /* it leads by more than chance */
	int64_t top_samples, pc_samples; /* of that reason; of all, issued or not */
};

struct op_fact {
	uint32_t name;
	int64_t count, cpu_self_ns, cpu_total_ns, gpu_self_ns, gpu_total_ns;
	enum phase phase;
};

struct copy_fact {
	uint32_t device;
	int kind;     /* enum copy_kind */
	int pageable; /* 1, 0, -1 unknown or managed */
	bool managed; /* unified memory: moved by the driver, or by a copy */
	int64_t count, bytes, sum_ns, union_ns;
	double gbps;           /* bytes / sum_ns; NAN */
	double link_peak_gbps; /* of PCIe, one way, see link.c; NAN */
	int64_t tiny_count;    /* of 64 bytes and less */
};

struct call_fact {
	uint32_t name;
	int64_t count, sum_ns, max_ns;
	int64_t context_ns; /* of that, in calls in which a context was made */
	bool synchronising;
};

/* A call of CUDA or HIP by its name: idle causes name the system's and CUPTI's records of
 * overhead in the same way. */
bool call_is_cuda(const char *name);

struct phase_fact {
	enum phase phase;
	int64_t count, wall_ns, gpu_ns, idle_ns;
	uint32_t name;      /* the longest thing in it; 0 */
	bool by_annotation; /* told by an annotation, not by structure */
};

/* Tiny device-to-host copies that the host waits for. */
struct readback_fact {
	uint32_t device;
	int64_t count;
	int64_t blocked_ns; /* host time in the copy and the wait after it */
	int64_t idle_ns;    /* device idle that begins at one of them and ends with the next launch,
			       without what is host_late of it: the host was busy elsewhere */
	double per_step;    /* NAN without steps */
	uint32_t op;        /* framework op or Python function round it, else its call; 0 */
};

struct step {
	int64_t start_ns, end_ns;
	int64_t gpu_busy_ns, idle_ns;
	int64_t kernel_count;
	uint32_t name;
	bool outlier, setup; /* setup: it began before the steady part of its device */
	uint32_t source;
	/* "idle 12.1 ms more", in facts' arena; a fault or a held clock at the time first. */
	VEC(const char *) differs;
};

/* A change of the reasons that hold a clock down. */
struct clock_mark {
	uint32_t device, source;
	uint32_t name; /* string */
	int64_t time_ns;
};

struct step_facts {
	const char *source; /* "profiler steps", "repeated range", "start/end ranges",
			       "repeated launches"; NULL: none */
	uint32_t name;      /* 0: repeated launches have none */
	int64_t p50_ns, p95_ns, p99_ns;
	int64_t missed; /* more, in which recording was off: in no number */
	VEC(struct step) step;
};

/* "ProfilerStep" of "ProfilerStep#3": what the steps' names have in common. */
int step_name_bytes(const char *name);

/* Those of one source: several processes have each their own. */
size_t steps_of(const struct step_facts *steps, uint32_t source);

struct range_fact {
	uint32_t name;
	int64_t count, sum_ns, gpu_ns;
};

struct facts {
	const struct session *session;
	const char *path;
	bool was_cut;
	int64_t damaged_chunks;
	int64_t start_ns, end_ns; /* of all events */
	bool has_timeline;
	bool no_device_activity; /* a timeline without any device work */
	bool host_time_inflated; /* recorded with stacks: host findings lose a grade */
	double host_inflation;   /* ratio where it can be told; NAN */
	int64_t unmatched_calls; /* launch calls without their op */
	int64_t captured_calls;  /* more, which went into a graph instead */
	int64_t unmatched_ops;
	int64_t streams_uncompared; /* of collectives: more than ranks are compared by */
	int64_t threads_unsearched; /* for steps, of processes in whose busiest none were found */
	VEC(struct device_fact) devices;
	VEC(struct kernel_fact) kernels; /* by sum_ns, then by counter duration */
	VEC(struct op_fact) ops;         /* by gpu_total_ns + cpu_self_ns */
	VEC(struct copy_fact) copies;
	VEC(struct page_fault_fact) page_faults; /* by union_ns, then faults */
	VEC(struct call_fact) calls;             /* by sum_ns */
	VEC(struct phase_fact) phases;
	VEC(struct readback_fact) readbacks;
	VEC(struct stream_wait_fact) stream_waits; /* by held_ns */
	VEC(struct wait_fact) waits;               /* failed ones first, then by time */
	int64_t waits_left_out;                    /* more that did not return */
	int64_t errors_left_out;                   /* more that failed */
	struct step_facts steps;
	struct step_facts requests;
	VEC(struct memory_fact) memory;
	VEC(struct range_fact) ranges;
	VEC(struct overhead_fact) overheads;       /* by sum_ns */
	VEC(struct calibration_fact) calibrations; /* a row for each process */
	VEC(struct callback_fact) callbacks;       /* the same */
	struct recorder_fact recorder;
	VEC(struct pc_sampling_fact) pc_samplings; /* a row for each process */
	int64_t own_ns; /* host time that recording itself took, of all threads */
	VEC(struct process_fact) processes;
	VEC(struct twin_fact) twins;
	VEC(struct fault_event) faults; /* by time */
	VEC(struct fault_group) fault_groups;
	VEC(struct clock_mark) clock_marks;
	int64_t faults_left_out; /* lines beyond what is kept: counted here alone */
	uint32_t fault_incidents;
	struct intern *fault_strings; /* names of processes in fault_event */
	struct arena arena;
	struct timeline *timeline; /* events in memory, between the analyses; NULL after */
};

/* All analyses over an opened store, which must outlive the facts. */
int facts_build(struct store *store, struct facts **ret_facts, struct err *err);
void facts_free(struct facts *facts);
DEFINE_OWNED(facts, facts_free);

/* The analyses, each in a file of its own, called by facts_build in this order. */
int analyze_timeline(struct store *store, struct facts *facts, struct err *err);
int analyze_host(struct store *store, struct facts *facts, struct err *err);
int analyze_system(struct store *store, struct facts *facts, struct err *err);
int analyze_faults(struct store *store, struct facts *facts, struct err *err);
/* Names faults and clocks held down at an outlier step and in a cause's longest gap. */
void analyze_step_marks(struct facts *facts);
int analyze_counters(struct store *store, struct facts *facts, struct err *err);
int analyze_overhead(struct store *store, struct facts *facts, struct err *err);
int analyze_stalls(struct store *store, struct facts *facts, struct err *err);
int analyze_queued(struct store *store, struct facts *facts, struct err *err);
