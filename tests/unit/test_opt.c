#include "base/opt.h"

#include <criterion/criterion.h>

#include "base/nearest.h"

struct sample_args {
	const char *output;
	int top;
	bool json;
	const char *when;
	const char *first;
	struct opt_list rest;
};

static const struct opt rows[] = {
	OPT_STRING(struct sample_args, output, 'o', "output", "FILE", "where to"),
	OPT_INT(struct sample_args, top, 'n', "top", "N", "rows"),
	OPT_FLAG(struct sample_args, json, 'j', "json", "for programs"),
	OPT_STRING(struct sample_args, when, 0, "color", "auto|always|never", "colours"),
	OPT_ARGUMENT(struct sample_args, first, "PROFILE", "what to read"),
	OPT_ARGUMENTS(struct sample_args, rest, "MORE", "others", false),
	OPT_END,
};

struct parse {
	struct sample_args args;
	struct opt_memory *memory;
	struct err err;
	bool help;
	int code;
};

static struct parse parse(const char *const *argv)
{
	struct parse p = { 0 };
	int argc = 0;

	while (argv[argc])
		argc++;
	p.code = opt_parse(rows, argc, argv, &p.args, &p.memory, &p.help, &p.err);
	return p;
}

#define PARSE(...) parse((const char *const[]){ "test", __VA_ARGS__, NULL })

Test(opt, fills_every_kind_of_field)
{
	struct parse p = PARSE("-o", "out", "--top=12", "-j", "--color", "never", "a", "b", "-");

	cr_assert_eq(p.code, 0, "%s", p.err.line);
	cr_assert_str_eq(p.args.output, "out");
	cr_assert_eq(p.args.top, 12);
	cr_assert(p.args.json);
	cr_assert_str_eq(p.args.when, "never");
	cr_assert_str_eq(p.args.first, "a");
	cr_assert_eq(p.args.rest.count, 2);
	cr_assert_str_eq(p.args.rest.at[0], "b");
	cr_assert_str_eq(p.args.rest.at[1], "-");
	opt_done(p.memory);
}

Test(opt, leaves_what_was_not_given_at_zero)
{
	struct parse p = PARSE("a");

	cr_assert_eq(p.code, 0);
	cr_assert_null(p.args.output);
	cr_assert_not(p.args.json);
	cr_assert_eq(p.args.rest.count, 0);
	opt_done(p.memory);
}

Test(opt, takes_what_follows_two_dashes_as_arguments)
{
	struct parse p = PARSE("--", "-j", "--top");

	cr_assert_eq(p.code, 0);
	cr_assert_str_eq(p.args.first, "-j");
	cr_assert_str_eq(p.args.rest.at[0], "--top");
	cr_assert_not(p.args.json);
	opt_done(p.memory);
}

Test(opt, the_last_of_repeated_options_wins)
{
	struct parse p = PARSE("-o", "one", "a", "-o", "two");

	cr_assert_eq(p.code, 0);
	cr_assert_str_eq(p.args.output, "two");
	opt_done(p.memory);
}

Test(opt, help_wins_over_what_is_missing)
{
	struct parse p = PARSE("--help");

	cr_assert_eq(p.code, 0);
	cr_assert(p.help);
	opt_done(p.memory);
}

static void refuses(struct parse p, const char *line)
{
	cr_assert_eq(p.code, ERR_USAGE);
	cr_assert_str_eq(p.err.line, line);
	cr_assert_null(p.memory);
}

Test(opt, names_what_it_refuses)
{
	refuses(PARSE("--jsno", "a"), "no option --jsno; did you mean --json?");
	refuses(PARSE("--frobnicate=3", "a"), "no option --frobnicate");
	refuses(PARSE("-x", "a"), "no option -x");
	refuses(PARSE("--json=1", "a"), "--json takes no value");
	refuses(PARSE("a", "--output"), "--output wants a value");
	refuses(PARSE("--top", "12x", "a"), "--top: '12x' is not a number from 0");
	refuses(PARSE("--top", "-1", "a"), "--top: '-1' is not a number from 0");
	refuses(PARSE("--top", "99999999999", "a"), "--top: '99999999999' is not a number from 0");
	refuses(PARSE("--color", "red", "a"), "--color: 'red' is none of auto|always|never");
	refuses(PARSE("-j"), "PROFILE is missing: what to read");
}

Test(opt, refuses_an_argument_nobody_asked_for)
{
	static const struct opt none[] = { OPT_END };
	struct opt_memory *memory = NULL;
	struct err err = { 0 };
	bool help;

	cr_assert_eq(opt_parse(none, 2, (const char *const[]){ "t", "x", NULL }, NULL, &memory,
			       &help, &err),
		     ERR_USAGE);
	cr_assert_str_eq(err.line, "one argument too many: 'x'");
}

Test(opt, help_lists_every_row_within_the_width)
{
	struct buf out = { 0 };

	opt_help(rows, &out);
	cr_assert_not_null(strstr(out.at, "  -o, --output FILE       where to\n"), "%s", out.at);
	cr_assert_not_null(strstr(out.at, "  PROFILE                 what to read\n"));
	cr_assert_not_null(strstr(out.at, "      --color auto|always|never\n"));
	for (const char *at = out.at; *at; at = strchr(at, '\n') + 1)
		cr_assert_leq(strchr(at, '\n') - at, 80);
	buf_done(&out);
}

static const char *nearest_of(const char *word)
{
	struct nearest nearest = { .word = word };

	nearest_try(&nearest, "import");
	nearest_try(&nearest, "report");
	nearest_try(&nearest, "sql");
	nearest_try(&nearest, "completion");
	return nearest.best ? nearest.best : "";
}

Test(nearest, finds_typing_errors_and_beginnings)
{
	cr_assert_str_eq(nearest_of("reprot"), "report");
	cr_assert_str_eq(nearest_of("mport"), "import");
	cr_assert_str_eq(nearest_of("slq"), "sql");
	cr_assert_str_eq(nearest_of("compl"), "completion");
}

Test(nearest, does_not_guess_from_far)
{
	cr_assert_str_eq(nearest_of("trace"), "");
	cr_assert_str_eq(nearest_of(""), "");
	cr_assert_str_eq(nearest_of("x"), "");
	cr_assert_str_eq(nearest_of("a-very-long-word-that-nobody-typed-by-mistake-in-a-command"),
			 "");
}

struct watch_args {
	const char *watch;
	bool json;
	const char *secret;
};

static const struct opt watch_rows[] = {
	OPT_OPTIONAL(struct watch_args, watch, 'w', "watch", "SECONDS", "again and again"),
	OPT_FLAG(struct watch_args, json, 'j', "json", "for programs"),
	OPT_STRING(struct watch_args, secret, 0, "secret", "FILE", NULL),
	OPT_END,
};

Test(opt, a_value_may_be_missing)
{
	static const struct {
		const char *argv[5];
		const char *watch;
		bool json;
	} cases[] = {
		{ { "test", "--watch" }, "", false },
		{ { "test", "--watch", "2" }, "2", false },
		{ { "test", "--watch=0.5", "-j" }, "0.5", true },
		{ { "test", "--watch", "--json" }, "", true },
		{ { "test", "-w", "-j" }, "", true },
		{ { "test", "-w3", "-j" }, "3", true },
		{ { "test", "-j" }, NULL, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct watch_args args = { 0 };
		struct opt_memory *memory = NULL;
		struct err err = { 0 };
		bool help;
		int argc = 0;

		while (cases[i].argv[argc])
			argc++;
		cr_assert_eq(
			opt_parse(watch_rows, argc, cases[i].argv, &args, &memory, &help, &err), 0,
			"%zu: %s", i, err.line);
		cr_assert_eq(!args.watch, !cases[i].watch, "%zu", i);
		if (args.watch)
			cr_assert_str_eq(args.watch, cases[i].watch, "%zu", i);
		cr_assert_eq(args.json, cases[i].json, "%zu", i);
		opt_done(memory);
	}
}

Test(opt, an_option_for_tests_works_and_is_not_shown)
{
	const char *const argv[] = { "test", "--secret", "x", NULL };
	struct watch_args args = { 0 };
	struct opt_memory *memory = NULL;
	struct err err = { 0 };
	struct buf help = { 0 };
	bool wants_help;

	cr_assert_eq(opt_parse(watch_rows, 3, argv, &args, &memory, &wants_help, &err), 0);
	cr_assert_str_eq(args.secret, "x");
	opt_help(watch_rows, &help);
	cr_assert(strstr(help.at, "-w, --watch [SECONDS]"));
	cr_assert_not(strstr(help.at, "secret"));
	opt_done(memory);
	buf_done(&help);
}
