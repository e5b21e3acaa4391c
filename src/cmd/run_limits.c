#include "cmd/run_limits.h"

#include <inttypes.h>

#include "base/str.h"
#include "collect/spool.h"

/* CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD: 2^5 to 2^31 cycles. */
enum { PERIOD_LEAST = 5, PERIOD_MOST = 31 };
static const uint64_t PC_MEMORY_LEAST = UINT64_C(1) << 20, PC_MEMORY_MOST = UINT64_C(64) << 30;
static const uint64_t THRESHOLD_MOST_NS = UINT64_C(60000000000);

static int number(const char *option, const char *text, uint64_t least, uint64_t most,
		  uint64_t *ret, struct err *err)
{
	if (!str_to_u64(str_of(text), ret) || *ret < least || *ret > most)
		return err_set(err, ERR_USAGE,
			       "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, option,
			       text, least, most);
	return 0;
}

/* Behind the digits: "", or K, M, G, with or without iB. Memory: powers of 2. */
static bool unit(struct str text, uint64_t *ret_scale)
{
	static const char units[] = "KMG";

	*ret_scale = 1;
	if (!text.len)
		return true;
	for (int i = 0; units[i]; i++) {
		if ((text.at[0] & ~0x20) == units[i]) {
			*ret_scale = UINT64_C(1) << (10 * (i + 1));
			return text.len == 1 ||
			       (text.len == 3 && text.at[1] == 'i' && text.at[2] == 'B');
		}
	}
	return false;
}

static int size(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret,
		struct err *err)
{
	struct str digits = { text, strspn(text, "0123456789") };
	uint64_t scale;

	if (!str_to_u64(digits, ret) || !unit(str_of(text + digits.len), &scale) ||
	    *ret > most / scale || *ret * scale < least)
		return err_set(err, ERR_USAGE,
			       "%s: '%s' is no size from %" PRIu64 "M to %" PRIu64
			       "G, such as 64M or 64MiB",
			       option, text, least >> 20, most >> 30);
	*ret *= scale;
	return 0;
}

static int pc_words(const struct run_limits *limits, bool pc, struct buf *out, struct err *err)
{
	uint64_t value;

	if (!pc && (limits->pc_period || limits->pc_memory))
		return err_set(err, ERR_USAGE, "%s says nothing without --pc-sampling on",
			       limits->pc_period ? "--pc-period" : "--pc-memory");
	if (limits->pc_period) {
		if (number("--pc-period", limits->pc_period, PERIOD_LEAST, PERIOD_MOST, &value,
			   err) < 0)
			return err->code;
		buf_printf(out, ",pc-period=%" PRIu64, value);
	}
	if (limits->pc_memory) {
		if (size("--pc-memory", limits->pc_memory, PC_MEMORY_LEAST, PC_MEMORY_MOST, &value,
			 err) < 0)
			return err->code;
		buf_printf(out, ",pc-memory=%" PRIu64, value);
	}
	return 0;
}

int run_limits_words(const struct run_limits *limits, bool pc, bool osrt, struct buf *out,
		     struct err *err)
{
	uint64_t value;

	if (pc_words(limits, pc, out, err) < 0)
		return err->code;
	if (!limits->osrt_threshold)
		return 0;
	if (!osrt)
		return err_set(err, ERR_USAGE,
			       "--osrt-threshold says nothing without osrt in --trace");
	if (number("--osrt-threshold", limits->osrt_threshold, 0, THRESHOLD_MOST_NS, &value, err) <
	    0)
		return err->code;
	buf_printf(out, ",osrt-threshold=%" PRIu64, value);
	return 0;
}

int run_limits_memory(const struct run_limits *limits, uint64_t *ret_bytes, struct err *err)
{
	*ret_bytes = 0;
	return limits->memory ? size("--memory", limits->memory, SPOOL_MEMORY_LEAST,
				     SPOOL_MEMORY_MOST, ret_bytes, err)
			      : 0;
}
