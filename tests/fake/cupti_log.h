/*
 * cupti_log.h - the log of what goes on between libsonde-inject.so and CUPTI: written by
 * record_cupti.c, played by replay_cupti.c. Text, one thing a line, in order:
 *
 *	sonde-cupti-log 1
 *	start MONOTONIC_NS REALTIME_NS PID TID   of which thread; TIME below counts from here
 *	trace TEXT              SONDE_TRACE, to be recorded again with the same
 *	c TIME TID NS NAME RESULT IN... [> OUT...]
 *	                        a call that we made and what it took, told as it returns;
 *	                        IN and OUT as CUPTI_LOG_SPECS has them, numbers in hex
 *	p OFFSET CRC FUNCTION REASON:SAMPLES...   after a GetData: one PC; numbers in hex
 *	b TIME TID DOMAIN CBID SITE CORRELATION CONTEXT CONTEXT_ID RESULT P:W P:W SYMBOL
 *	                        CUPTI called us back from a call of CUDA's; P: its first two
 *	                        parameters, W: the word that each points to, - none
 *	m TIME TID CBID CONTEXT STREAM [MODULE BYTES]   or for a context, stream, module
 *	a TIME TID BUFFER BYTES    it asked for a buffer, and got that
 *	s KIND BYTES               records of a kind are so long
 *	d TIME TID BUFFER BYTES VALID RECORDS   it gave it back, with so many records:
 *	r HEX [NAME]               as CUPTI left it, without the zeros at its end; NAME: what
 *	                           its pointer points to
 *	full                       there was no room for more
 *	end LEFT_OUT               things that were not written, then
 *
 * TIME, NS and those of `start`, TID and PID, BYTES, RECORDS, LEFT_OUT, KIND, CBID, DOMAIN
 * and SITE are decimal, the rest is hex. Texts stand in "", with %XX for what is not a plain
 * letter. Pointers are numbers that mean something to CUPTI alone. A log without `end` was
 * cut off: the program was killed, or the file. It is as long as it was allowed to be then,
 * with zeros at its end.
 */
#pragma once

#include "inject/inject.h"

/*
 * X(name, spec): a letter for each argument. In: u 32 bits, y 8 bits, p a pointer, v the byte
 * that it points to, - nothing. Out: U 32 bits, Z 64 bits, T a text. k: PC sampling, its
 * context; n: and a count comes out; N: names of stall reasons; D: samples come out:
 * TOTAL DROPPED COUNT REMAINING OTHER FULL, and COUNT lines `p`. C: bytes of a cubin in, its
 * checksum out. Calls that are not here are not written: cuptiActivityGetNextRecord, of
 * which `s` tells all.
 */
#define CUPTI_LOG_SPECS(X)                                  \
	X(cuptiGetVersion, "U")                             \
	X(cuptiSubscribe, "---")                            \
	X(cuptiUnsubscribe, "-")                            \
	X(cuptiEnableCallback, "u-uu")                      \
	X(cuptiGetCallbackName, "uuT")                      \
	X(cuptiActivityRegisterCallbacks, "--")             \
	X(cuptiActivityEnable, "u")                         \
	X(cuptiActivityDisable, "u")                        \
	X(cuptiActivityFlushAll, "u")                       \
	X(cuptiActivityGetNumDroppedRecords, "--Z")         \
	X(cuptiActivitySetAttribute, "u-v")                 \
	X(cuptiActivityFlushPeriod, "u")                    \
	X(cuptiActivityRegisterTimestampCallback, "-")      \
	X(cuptiSetThreadIdType, "u")                        \
	X(cuptiActivityEnableRuntimeApi, "uy")              \
	X(cuptiActivityEnableDriverApi, "uy")               \
	X(cuptiActivityEnableLatencyTimestamps, "y")        \
	X(cuptiActivityConfigureUnifiedMemoryCounter, "-u") \
	X(cuptiGetContextId, "pU")                          \
	X(cuptiGetStreamId, "ppU")                          \
	X(cuptiGetStreamIdEx, "ppyU")                       \
	X(cuptiGetDeviceId, "pU")                           \
	X(cuptiGetCubinCrc, "C")                            \
	X(cuptiPCSamplingEnable, "k")                       \
	X(cuptiPCSamplingGetNumStallReasons, "n")           \
	X(cuptiPCSamplingGetStallReasons, "N")              \
	X(cuptiPCSamplingSetConfigurationAttribute, "k")    \
	X(cuptiPCSamplingGetData, "D")

enum cupti_call {
#define X(name, spec) CALL_##name,
	CUPTI_LOG_SPECS(X)
#undef X
		CALL_COUNT,
	CALL_NONE = CALL_COUNT,
};

enum {
	CUPTI_LOG_ARGS = 4,
	CUPTI_LOG_KINDS = 64,
	CUPTI_LOG_NAME_BYTES = 8192, /* of a text, with its end */
	CUPTI_LOG_REASONS = 128,
	CUPTI_LOG_RECORD_BYTES = 1024,
	CUPTI_LOG_BUFFER_BYTES = 64 << 20,
	CUPTI_LOG_PCS = 1 << 16, /* of one GetData */
};

/* Any function of CUPTI's: all of its arguments are numbers or pointers. */
typedef uint32_t cupti_any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Where in a record of this kind a pointer to a name is; 0: there is none. */
static inline size_t cupti_log_name_at(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return offsetof(struct cupti_kernel, name);
	case CUPTI_KIND_DEVICE:
		return offsetof(struct cupti_device, name);
	default:
		return 0;
	}
}
