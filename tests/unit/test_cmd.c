#include "cmd/cmd.h"

#include <criterion/criterion.h>
#include <ctype.h>

#include "cmd/profile_file.h"

static const struct cmd *at(size_t i)
{
	size_t count;
	const struct cmd *const *cmds = cmd_list(&count);

	return i < count ? cmds[i] : NULL;
}

Test(cmd, each_is_found_by_its_name_and_has_what_help_needs)
{
	for (size_t i = 0; at(i); i++) {
		const char *summary = at(i)->summary;

		cr_assert_eq(cmd_find(at(i)->name), at(i));
		cr_assert(isupper((unsigned char)summary[0]), "%s", at(i)->name);
		cr_assert_neq(summary[strlen(summary) - 1], '.', "%s", at(i)->name);
		cr_assert_not_null(at(i)->run);
		cr_assert_gt(at(i)->args_size, 0);
	}
	cr_assert_null(cmd_find("nothing"));
}

static bool is_argument(const struct opt *opt)
{
	return opt->kind == OPT_KIND_ARGUMENT || opt->kind == OPT_KIND_ARGUMENTS ||
	       opt->kind == OPT_KIND_COMMAND;
}

static void check_pair(const struct cmd *cmd, const struct opt *a, const struct opt *b)
{
	if (is_argument(a) || is_argument(b))
		return;
	cr_assert_str_neq(a->word, b->word, "%s --%s", cmd->name, a->word);
	cr_assert(!a->letter || a->letter != b->letter, "%s -%c", cmd->name, a->letter);
}

Test(cmd, no_two_options_of_a_command_share_a_word_or_letter)
{
	for (size_t i = 0; at(i); i++) {
		for (const struct opt *a = at(i)->opts; a->kind != OPT_KIND_END; a++) {
			cr_assert_lt(a->offset, at(i)->args_size);
			cr_assert(a->what || !opt_is_shown(a));
			cr_assert(is_argument(a) || a->letter != 'h', "-h is --help");
			for (const struct opt *b = a + 1; b->kind != OPT_KIND_END; b++)
				check_pair(at(i), a, b);
		}
	}
}

Test(cmd, nothing_follows_the_argument_that_takes_the_rest)
{
	for (size_t i = 0; at(i); i++) {
		bool rest = false;

		for (const struct opt *opt = at(i)->opts; opt->kind != OPT_KIND_END; opt++) {
			cr_assert(!rest || !is_argument(opt), "%s %s", at(i)->name, opt->value);
			rest |= opt->kind == OPT_KIND_ARGUMENTS;
		}
	}
}

Test(cmd, an_unknown_name_is_told_with_the_nearest_one)
{
	struct err err = { 0 };

	cr_assert_eq(cmd_unknown("imprt", &err), ERR_USAGE);
	cr_assert_str_eq(err.line, "no command 'imprt'; did you mean 'import'?");
	cr_assert_eq(cmd_unknown(SOURCE_DIR "/README.md", &err), ERR_USAGE);
	cr_assert_str_eq(err.line, "no command '" SOURCE_DIR
				   "/README.md'; try 'sonde report " SOURCE_DIR "/README.md'");
}

Test(import, a_database_is_known_by_its_first_bytes)
{
	cr_assert(profile_file_is_database(SOURCE_DIR "/examples/train_slow.sonde"));
	cr_assert_not(profile_file_is_database(SOURCE_DIR "/README.md"));
	cr_assert_not(profile_file_is_database(SOURCE_DIR));
	cr_assert_not(profile_file_is_database("/no/such/file"));
	cr_assert_not(profile_file_is_database("/dev/null"));
}
