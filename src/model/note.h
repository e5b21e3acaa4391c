/*
 * note.h - the sentences that a recording says of itself.
 *
 * session_note() and its like are called with a NOTE_X of this list and nothing
 * else, but for texts of others ("%s"). A profile holds the finished English
 * text; the report finds here which sentence it was and says it in the reader's
 * language, also of profiles that are older than the translation. What stands
 * for a %s may be one of these in turn.
 *
 * The first that fits is taken: the special stands before the general, and none
 * has a "%%". If a
 * wording changes, the old one stays in the list for as long as there are
 * profiles with it.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define NOTE_LIST(X)                                                                               \
	/* Of a program's process. */                                                              \
	X(OBJECTS_FULL, "process %u: %d events and graphs live at a time: more are not told of")   \
	X(WAITS_LOST, "process %u: %llu waits found no room while they lasted: had one not "       \
		      "returned, it would not be told")                                            \
	X(PROCESS, "process %u: %s")                                                               \
	X(KILLED, "process %u ended without its exit handlers: what it had not handed over is "    \
		  "lost")                                                                          \
	X(STILL_RUNS, "still runs: what it does from here on is not recorded")                     \
	X(NO_CUPTI, "no libcupti was found: GPU activity is not recorded (set SONDE_CUPTI=PATH, "  \
		    "or install cuda-cupti)")                                                      \
	X(CUPTI_VERSION, "CUPTI version %u is not one of 12.0 to 13.x: GPU activity is not "       \
			 "recorded")                                                               \
	X(CUPTI_HELD, "another tool holds CUPTI in this process: GPU activity is not recorded")    \
	X(CUPTI_FAILED, "CUPTI failed (%u): GPU activity is not recorded")                         \
	X(YIELDED, "the program asked for CUPTI itself: from then on its GPU activity is not "     \
		   "recorded")                                                                     \
	X(OTHER_TOOL, "another tool is at work there %s: its GPU activity is not recorded")        \
	/* Of --capture-range. */                                                                  \
	X(NO_PROFILER, "cudaProfilerStart was not called: recording never began")                  \
	X(RANGE_OUTSIDE, "the range of --capture-range came only where --delay and --duration "    \
			 "leave no time for it: recording never began")                            \
	X(RANGE_UNKNOWN, "no NVTX range %.64s came: recording never began (with nvtx in --trace "  \
			 "those that came are told)")                                              \
	X(RANGE_NONE, "no NVTX range %.64s came, nor any other: recording never began")            \
	X(RANGE_MORE,                                                                              \
	  "no NVTX range %.64s came: recording never began; the first of %zu that came: %s")       \
	X(RANGE_OTHERS, "no NVTX range %.64s came: recording never began; those that came: %s")    \
	X(STRANGER, "the library in a process is of another build of sonde (version %u, not "      \
		    "%d): nothing of it is recorded")                                              \
	X(NO_UNIFIED, "CUPTI refused records of unified memory (%u): its faults and moves are "    \
		      "not recorded")                                                              \
	X(NO_QUEUED, "this CUPTI does not tell when launches were queued")                         \
	X(QUEUED_REFUSED, "CUPTI refused to tell when launches were queued (%u)")                  \
	X(RECORDS_LOST,                                                                            \
	  "%" PRIu64 " records were lost: %" PRIu64 " of kernels, %" PRIu64 " of calls, %" PRIu64  \
	  " of others, %" PRIu64 " by CUPTI, which names no kind")                                 \
	X(SLOTS_LOST, "%" PRIu64 " ranges, marks, waits and sites were lost, their ring was "      \
		      "full; %" PRIu64 " calls came from inside sonde's own functions")            \
	X(TEXTS_LOST, "%" PRIu64 " texts found no room: ranges, marks or call stacks are without " \
		      "their names")                                                               \
	/* Of PC sampling. */                                                                      \
	X(NO_PC_SAMPLING, "no PC sampling (CUPTI %u%s): no stall reasons")                         \
	X(NO_PERMISSION, ", no permission")                                                        \
	X(COUNTERS_IN_USE, ", the counters are in use")                                            \
	X(PC_CONTEXTS, "PC sampling is of the first context on each card: its others have no "     \
		       "stall reasons")                                                            \
	X(UNNAMED_SAMPLES, "%" PRId64 " PC samples were lost: the name of their reason found no "  \
			   "room")                                                                 \
	X(PC_DROPPED, "%" PRIu64 " of %" PRIu64 " PC samples were dropped on the card: stall "     \
		      "reasons are of the others (a longer --pc-period makes fewer samples)")      \
	X(PC_FULL_AT_ONCE, "the memory for PC samples was full%s before one could be read: there " \
			   "are no stall reasons (a longer --pc-period makes fewer samples)")      \
	X(PC_FULL, "the memory for PC samples was full%s: stall reasons are of at most %.1f s of " \
		   "%.1f s (a longer --pc-period makes fewer samples)")                            \
	X(PC_FULL_BEFORE,                                                                          \
	  "the memory for PC samples was full%s: stall reasons are of %.1f s of %.1f s "           \
	  "(a longer --pc-period makes fewer samples)")                                            \
	X(PC_FAILED, "PC sampling ended early%s (CUPTI %u%s): stall reasons are of %.1f s of "     \
		     "%.1f s")                                                                     \
	X(IN_CONTEXTS, " in %u of %u contexts")                                                    \
	/* Of what recording costs. */                                                             \
	X(NO_COST, "what recording costs can't be told: %s")                                       \
	X(COST_NUMBERS, "the launches have no numbers")                                            \
	X(COST_SHORT, "too few windows: the program is too short")                                 \
	X(COST_FEW, "%zu of %zu windows had launches, and %zu pauses between them enough to be "   \
		    "compared; it takes %d")                                                       \
	X(COST_PAUSES, "recording paused to see what it costs: counts and times leave those "      \
		       "windows out")                                                              \
	/* Of threads and their stacks. */                                                         \
	X(THREAD_BUSY, "thread %lld switches so often that to record it would slow it: fewer "     \
		       "records, or looks, of it and others like it")                              \
	X(THREADS_LEFT_OUT, "%lld threads more than %d made calls at a time: what they were at "   \
			    "is not recorded")                                                     \
	X(MAPS_OLD, "--perf-map: Python %s of process %lld%s writes no perf map, as 3.12 and "     \
		    "later do: its functions have no names in call stacks")                        \
	X(MAPS_OLDER, "before 3.11")                                                               \
	X(AND_OTHERS, " and others")                                                               \
	X(MAPS_NONE, "--perf-map: no process wrote a perf map: none was Python 3.12 or later "     \
		     "that heeds its environment")                                                 \
	X(MAPS_STAYED, "--perf-map: perf maps of Python that stayed in /tmp: %lld%s; their "       \
		       "processes ended before it could be seen whether they are of this run")     \
	X(OR_MORE, " or more")                                                                     \
	/* Of the monitor. */                                                                      \
	X(NO_VALUES, "rounds without values: %s")                                                  \
	X(NO_GPU, "the driver lists no GPU")                                                       \
	X(LOG_UNREAD, "%lld record(s) of the kernel log were overwritten unread")                  \
	X(DISK_REFUSED, "the disk refused %lld snapshot(s) before this file could begin")          \
	X(FLIGHT, "flight record: %s")                                                             \
	X(FAULT_TOLD, "the driver reported a fault")                                               \
	X(CARD_LOST, "a card was lost")                                                            \
	X(CARD_HOT, "a card was slowed by its heat")                                               \
	X(CLOCK_FELL, "a card's clock fell under load")                                            \
	X(HOST_OOM, "a process was killed for lack of memory")                                     \
	X(FLIGHTS, "flight records that are reported by themselves: %d")                           \
	X(CLOCK_BACK, "%s: begins before the recording before it ended: the clock was set back, "  \
		      "or it is another machine")                                                  \
	X(CUT_OFF, "%s: was cut off")                                                              \
	X(LEFT_OUT, "left out: %s")                                                                \
	/* Of files of other tools. */                                                             \
	X(TOO_LARGE, "\"%.*s\" is too large and was left out")                                     \
	X(NO_CUDA, "no CUDA or HIP work in it; accelerator: %s")                                   \
	X(LONG_LINE, "line %lld is longer than %d MiB: the rest of it is lost")                    \
	X(NO_STAMPS, "no time stamps: faults are known in their order alone")                      \
	X(SINCE_BOOT, "times are seconds since boot: the file is a clock of its own")              \
	X(LOCAL_TIME, "times are local time without a zone: the file is a clock of its own")       \
	X(YEARLESS, "times are local time without a year or a zone: the file is a clock of its "   \
		    "own")                                                                         \
	X(LOG_UNSTAMPED, "kernel log: faults without a time of the file's clock, put at the time " \
			 "of the line before: %" PRId64)                                           \
	X(LOG_BACK, "kernel log: lines that are older than the one before them: %" PRId64)         \
	X(LOG_STARTS, "kernel log: starts of the machine within the file: %" PRId64                \
		      "; the time between is not known")                                           \
	X(LOG_KEPT_BACK, "kernel log: messages that the kernel kept back: %" PRId64)               \
	X(LOG_OVERWRITTEN, "kernel log: records that were overwritten before they were read: "     \
			   "%" PRId64)                                                             \
	X(LOG_CLOCK, "kernel log: %s")                                                             \
	X(NO_PROCESS, "--query: no process was running")                                           \
	X(BROKEN_XML, "-q -x: %s:%lu: %s")                                                         \
	X(ENTITIES, "declares entities")                                                           \
	X(COLUMNS_CHANGE, "%s: the columns change in the middle of the file")                      \
	X(COLUMN_UNKNOWN, "%s: the column %s is not known; its values are not kept")               \
	X(ABSENT, "%s: values that are absent: %s")                                                \
	X(COUNTED_MORE, "%lld x %s, %s")                                                           \
	X(COUNTED, "%lld x %s")                                                                    \
	X(NO_VALUE, "no value")                                                                    \
	X(NOT_AVAILABLE, "not available")                                                          \
	X(NOT_FOUND, "not found")                                                                  \
	X(NO_FUNCTION, "the driver lacks the function")                                            \
	X(NOT_SUPPORTED, "not supported")                                                          \
	X(UNKNOWN_ERROR, "unknown error")                                                          \
	X(UNKNOWN, "unknown")                                                                      \
	X(DRIVER_ERROR, "the driver reported an error")                                            \
	X(GPU_LOST, "the GPU is lost")                                                             \
	X(GPU_RESET, "the GPU requires a reset")                                                   \
	X(FORBIDDEN, "insufficient permissions")                                                   \
	X(DEPRECATED, "deprecated")                                                                \
	X(NOT_IN_WDDM, "not available in the WDDM driver model")                                   \
	X(NO_DATA, "no data")                                                                      \
	X(EMPTY, "empty")                                                                          \
	X(BRACKETS, "given as a text in brackets")                                                 \
	X(LOCAL_CLOCK, "%s: times are local time without a zone: the file is a clock of its own")  \
	X(LOCAL_BACK, "%s: the local clock went back within the file")                             \
	X(ASSUMED_STEP, "%s: no time stamps: samples are taken to be %lld s apart")                \
	X(STRAYS, "%s: lines that are not its own: %lld, the first: %s")                           \
	X(SETTINGS_LOST, "%s: changes of settings that were not kept: %lld")                       \
	X(SOME_GPUS, "%s: shows %zu of %lld GPUs: which index they have is not known")             \
	X(FIELDS_LOST, "%s: fields that were too many to keep: %lld")                              \
	/* Last, as it fits much: what somebody else says after a sentence of ours. */             \
	X(BECAUSE, "%s: %.200s")

#define X(id, text) static const char NOTE_##id[] __attribute__((unused)) = text;
NOTE_LIST(X)
#undef X

enum { NOTE_WORDS_MAX = 8 };

struct note_found {
	const char *format;               /* of NOTE_LIST */
	struct str words[NOTE_WORDS_MAX]; /* what stands for its conversions; of the text */
	size_t count;
};

/* Which sentence a text is. */
bool note_find(struct str text, struct note_found *ret_found);

/* The conversion of a format at its '%': the letter it ends with, and in *ret_place which
 * argument it takes, counted from 1 (0: the next). *format then stands behind it. */
char note_conversion(const char **format, size_t *ret_place);
