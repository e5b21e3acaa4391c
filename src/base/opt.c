#include "base/opt.h"

#include <limits.h>
#include <popt.h>
#include <string.h>

#include "base/i18n.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/own.h"
#include "base/str.h"
#include "base/vec.h"

enum { HELP_COLUMN = 26, HELP_WIDTH = 79 };

struct opt_memory {
	poptContext context;      /* keeps the arguments */
	struct poptOption *table; /* popt looks into it as long as the context lives */
	VEC(char *) texts;        /* values of options */
};

static bool is_option(const struct opt *opt)
{
	return opt->kind == OPT_KIND_STRING || opt->kind == OPT_KIND_INT ||
	       opt->kind == OPT_KIND_FLAG || opt->kind == OPT_KIND_OPTIONAL;
}

bool opt_is_shown(const struct opt *opt)
{
	return is_option(opt) && opt->what;
}

static size_t opt_count(const struct opt *opts)
{
	size_t count = 0;

	while (opts[count].kind != OPT_KIND_END)
		count++;
	return count;
}

void opt_done(struct opt_memory *memory)
{
	if (!memory)
		return;
	if (memory->context)
		(void)poptFreeContext(memory->context);
	for (size_t i = 0; i < memory->texts.count; i++)
		free(memory->texts.at[i]);
	VEC_DONE(&memory->texts);
	free(memory->table);
	free(memory);
}

DEFINE_OWNED(opt_memory, opt_done);

static unsigned int arg_info(enum opt_kind kind)
{
	if (kind == OPT_KIND_FLAG)
		return POPT_ARG_NONE;
	return kind == OPT_KIND_OPTIONAL ? POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL
					 : POPT_ARG_STRING;
}

/* popt's table from ours. `val` is the row's number + 1, so that poptGetNextOpt
 * tells which option it met; --help comes last, as row `count`. */
static struct poptOption *popt_table(const struct opt *opts, size_t count)
{
	struct poptOption *table = mem_zero((count + 2) * sizeof(*table));
	struct poptOption *to = table;

	for (size_t i = 0; i < count; i++) {
		if (!is_option(&opts[i]))
			continue;
		*to++ = (struct poptOption){
			.longName = opts[i].word,
			.shortName = opts[i].letter,
			.argInfo = arg_info(opts[i].kind),
			.val = (int)i + 1,
		};
	}
	*to = (struct poptOption){ .longName = "help", .shortName = 'h', .val = (int)count + 1 };
	return table;
}

/* A value like "auto|always|never" in the table lists all there are. */
static bool value_allowed(const char *choices, const char *value)
{
	struct str rest = str_of(choices);

	if (!strchr(choices, '|'))
		return true;
	while (rest.at) {
		if (str_is(str_cut(&rest, '|'), value))
			return true;
	}
	return false;
}

static int set_int(const struct opt *opt, void *field, const char *text, struct err *err)
{
	int64_t value;

	if (!str_to_i64(str_of(text), &value) || value < 0 || value > INT_MAX)
		return err_set(err, ERR_USAGE, "--%s: '%s' is not a number from 0", opt->word,
			       text);
	*(int *)field = (int)value;
	return 0;
}

static int set_option(const struct opt *opt, void *args, struct opt_memory *memory, struct err *err)
{
	void *field = (char *)args + opt->offset;
	char *text;

	if (opt->kind == OPT_KIND_FLAG) {
		*(bool *)field = true;
		return 0;
	}
	text = poptGetOptArg(memory->context);
	*VEC_ADD(&memory->texts) = text;
	if (!text && opt->kind == OPT_KIND_OPTIONAL) {
		*(const char **)field = "";
		return 0;
	}
	if (!text)
		return err_set(err, ERR_USAGE, "--%s wants a value: %s", opt->word, opt->value);
	if (opt->kind == OPT_KIND_INT)
		return set_int(opt, field, text, err);
	if (!value_allowed(opt->value, text))
		return err_set(err, ERR_USAGE, "--%s: '%s' is none of %s", opt->word, text,
			       opt->value);
	*(const char **)field = text;
	return 0;
}

static int bad_option(const struct opt *opts, poptContext context, int code, struct err *err)
{
	const char *bad = poptBadOption(context, POPT_BADOPTION_NOALIAS);
	size_t len = strcspn(bad, "=");
	struct nearest nearest = { 0 };

	if (code == POPT_ERROR_NOARG)
		return err_set(err, ERR_USAGE, "%s wants a value", bad);
	if (code == POPT_ERROR_UNWANTEDARG)
		return err_set(err, ERR_USAGE, "%.*s takes no value", (int)len, bad);
	if (code != POPT_ERROR_BADOPT)
		return err_set(err, ERR_USAGE, "%s: %s", bad, poptStrerror(code));
	if (!strncmp(bad, "--", 2)) {
		nearest.word = bad + 2;
		for (const struct opt *opt = opts; opt->kind != OPT_KIND_END; opt++) {
			if (opt_is_shown(opt))
				nearest_try(&nearest, opt->word);
		}
	}
	if (nearest.best)
		return err_set(err, ERR_USAGE, "no option %.*s; did you mean --%s?", (int)len, bad,
			       nearest.best);
	return err_set(err, ERR_USAGE, "no option %.*s", (int)len, bad);
}

/* The rows for arguments take what popt left over, in their order. */
static int set_arguments(const struct opt *opts, const char *const *left, void *args,
			 struct err *err)
{
	size_t count = 0, used = 0;

	while (left && left[count])
		count++;
	for (const struct opt *opt = opts; opt->kind != OPT_KIND_END; opt++) {
		void *field = (char *)args + opt->offset;

		if (is_option(opt))
			continue;
		if (used == count && opt->required)
			return err_set(err, ERR_USAGE, "%s is missing: %s", opt->value, opt->what);
		if (opt->kind == OPT_KIND_ARGUMENTS || opt->kind == OPT_KIND_COMMAND) {
			*(struct opt_list *)field =
				(struct opt_list){ used < count ? left + used : NULL,
						   count - used };
			used = count;
		} else if (used < count) {
			if (!value_allowed(opt->value, left[used]))
				return err_set(err, ERR_USAGE, "'%s' is none of %s", left[used],
					       opt->value);
			*(const char **)field = left[used++];
		}
	}
	if (used < count)
		return err_set(err, ERR_USAGE, "one argument too many: '%s'", left[used]);
	return 0;
}

/* A command's words are not ours to look for options in. */
static unsigned int context_flags(const struct opt *opts)
{
	for (; opts->kind != OPT_KIND_END; opts++) {
		if (opts->kind == OPT_KIND_COMMAND)
			return POPT_CONTEXT_POSIXMEHARDER;
	}
	return 0;
}

int opt_parse(const struct opt *opts, int argc, const char *const *argv, void *args,
	      struct opt_memory **ret_memory, bool *ret_help, struct err *err)
{
	OWN(opt_donep) struct opt_memory *memory = mem_zero(sizeof(*memory));
	size_t count = opt_count(opts);
	int code;

	*ret_help = false;
	memory->table = popt_table(opts, count);
	memory->context =
		poptGetContext(NULL, argc, (const char **)argv, memory->table, context_flags(opts));
	if (!memory->context)
		return err_set(err, ERR_USAGE, "no arguments to parse");
	while ((code = poptGetNextOpt(memory->context)) > 0) {
		if ((size_t)code == count + 1) {
			*ret_help = true;
			*ret_memory = STEAL(memory);
			return 0;
		}
		if (set_option(&opts[code - 1], args, memory, err) < 0)
			return err->code;
	}
	if (code < -1)
		return bad_option(opts, memory->context, code, err);
	if (set_arguments(opts, poptGetArgs(memory->context), args, err) < 0)
		return err->code;
	*ret_memory = STEAL(memory);
	return 0;
}

/* "text" from column `column` on, broken between words. */
static void add_wrapped(struct buf *out, const char *text, size_t column)
{
	size_t at = column;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > column && at + 1 + len > HELP_WIDTH) {
			buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			buf_char(out, ' ');
			at++;
		}
		buf_add(out, text, len);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	buf_char(out, '\n');
}

static void add_row(struct buf *out, const char *left, const char *what)
{
	if (strlen(left) > HELP_COLUMN - 4)
		buf_printf(out, "  %s\n%*s", left, HELP_COLUMN, "");
	else
		buf_printf(out, "  %-*s", HELP_COLUMN - 2, left);
	add_wrapped(out, *what ? _(what) : what, HELP_COLUMN);
}

static void add_option(struct buf *out, const struct opt *opt)
{
	char left[80];
	char letter[8] = "    ";

	if (opt->letter)
		(void)snprintf(letter, sizeof(letter), "-%c, ", opt->letter);
	if (opt->kind == OPT_KIND_OPTIONAL)
		(void)snprintf(left, sizeof(left), "%s--%s [%s]", letter, opt->word, opt->value);
	else
		(void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, opt->word,
			       opt->value ? " " : "", opt->value ? opt->value : "");
	add_row(out, left, opt->what);
}

void opt_help(const struct opt *opts, struct buf *out)
{
	bool any = false;

	for (const struct opt *opt = opts; opt->kind != OPT_KIND_END; opt++) {
		if (!is_option(opt)) {
			add_row(out, opt->value, opt->what);
			any = true;
		}
	}
	if (any)
		buf_char(out, '\n');
	for (const struct opt *opt = opts; opt->kind != OPT_KIND_END; opt++) {
		if (opt_is_shown(opt))
			add_option(out, opt);
	}
	add_row(out, "-h, --help", N_("show this"));
}
