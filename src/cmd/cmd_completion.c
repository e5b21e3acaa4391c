/*
 * Completion scripts, made from the same tables as the parser and the help.
 *
 * A value "a|b|c" completes to its words, any other to file names.
 */
#include <string.h>

#include "base/i18n.h"
#include "base/own.h"
#include "base/str.h"
#include "cmd/cmd.h"

struct completion_args {
	const char *shell;
};

static const struct opt completion_opts[] = {
	OPT_ARGUMENT(struct completion_args, shell, "bash|zsh|fish", N_("the shell")),
	OPT_END,
};

static bool takes_words(const char *value)
{
	return strchr(value, '|') || !strcmp(value, "COMMAND");
}

static void add_names(struct buf *out)
{
	size_t count;
	const struct cmd *const *cmds = cmd_list(&count);

	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? " " : "", cmds[i]->name);
}

/* Shells offer nothing after an option that may stand alone. */
static bool wants_value(const struct opt *opt)
{
	return opt->value && opt->kind != OPT_KIND_OPTIONAL;
}

/* What a value can be, with blanks between; nothing for "FILE". */
static void add_words(struct buf *out, const char *value)
{
	if (!strcmp(value, "COMMAND"))
		add_names(out);
	if (!strchr(value, '|'))
		return;
	for (const char *at = value; *at; at++)
		buf_char(out, *at == '|' ? ' ' : *at);
}

/* In single quotes, for any of the shells: no text of ours has one inside but
 * for an apostrophe, which is written as a typographic one. */
static void add_quoted(struct buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_text(out, "\xe2\x80\x99");
		else
			buf_char(out, *text);
	}
	buf_char(out, '\'');
}

/* The words that an option of this command takes, one shell case each. */
static void bash_values(struct buf *out, const struct cmd *cmd)
{
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		if (!opt_is_shown(opt) || !wants_value(opt))
			continue;
		buf_printf(out, "\t%s:--%s", cmd->name, opt->word);
		if (opt->letter)
			buf_printf(out, "|%s:-%c", cmd->name, opt->letter);
		buf_text(out, ") words='");
		add_words(out, opt->value);
		buf_text(out, "' ;;\n");
	}
}

static void bash_command(struct buf *out, const struct cmd *cmd)
{
	buf_printf(out, "\t%s:-*) words='--help", cmd->name);
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		if (opt_is_shown(opt))
			buf_printf(out, " --%s", opt->word);
	}
	buf_text(out, "' ;;\n");
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		if ((opt->kind != OPT_KIND_ARGUMENT && opt->kind != OPT_KIND_ARGUMENTS) ||
		    !takes_words(opt->value))
			continue;
		buf_printf(out, "\t%s:*) words='", cmd->name);
		add_words(out, opt->value);
		buf_text(out, "' ;;\n");
	}
}

static void add_bash(struct buf *out)
{
	size_t count;
	const struct cmd *const *cmds = cmd_list(&count);

	buf_text(out, "# sonde(1) for bash: source this, or put it where bash-completion looks.\n"
		      "_sonde() {\n"
		      "\tlocal word=${COMP_WORDS[COMP_CWORD]} words=''\n"
		      "\tlocal last=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
		      "\tif ((COMP_CWORD == 1)); then\n\t\twords='");
	add_names(out);
	buf_text(out, " --help --version'\n\telse\n\tcase $command:$last in\n");
	for (size_t i = 0; i < count; i++)
		bash_values(out, cmds[i]);
	buf_text(out, "\t*) case $command:$word in\n");
	for (size_t i = 0; i < count; i++)
		bash_command(out, cmds[i]);
	buf_text(out, "\tesac ;;\n\tesac\n\tfi\n"
		      "\tif [[ $words ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
		      "\telse\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		      "\tfi\n"
		      "}\n"
		      "complete -o filenames -F _sonde sonde\n");
}

/* "(the words)" or "_files", as _arguments wants an action. */
static void zsh_action(struct buf *out, const char *value)
{
	if (!takes_words(value)) {
		buf_text(out, "_files");
		return;
	}
	buf_char(out, '(');
	add_words(out, value);
	buf_char(out, ')');
}

static void zsh_command(struct buf *out, const struct cmd *cmd)
{
	buf_printf(out, "\t%s)\n\t\t_arguments -s '--help[show this]'", cmd->name);
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		struct buf spec = { 0 };

		if (!opt->what)
			continue;
		if (opt_is_shown(opt))
			buf_printf(&spec, "--%s%s[%s]%s", opt->word, wants_value(opt) ? "=" : "",
				   opt->what, wants_value(opt) ? ":value:" : "");
		else
			buf_printf(&spec,
				   "%s:argument:", opt->kind == OPT_KIND_ARGUMENTS ? "*" : "");
		if (wants_value(opt))
			zsh_action(&spec, opt->value);
		buf_text(out, " \\\n\t\t\t");
		add_quoted(out, spec.at);
		buf_done(&spec);
	}
	buf_text(out, " ;;\n");
}

static void add_zsh(struct buf *out)
{
	size_t count;
	const struct cmd *const *cmds = cmd_list(&count);

	buf_text(out, "#compdef sonde\n"
		      "# sonde(1) for zsh: put this into a directory of $fpath as _sonde.\n"
		      "_sonde() {\n"
		      "\tif ((CURRENT == 2)); then\n"
		      "\t\tlocal -a commands=(\n");
	for (size_t i = 0; i < count; i++) {
		struct buf line = { 0 };

		buf_printf(&line, "%s:%s", cmds[i]->name, cmds[i]->summary);
		buf_text(out, "\t\t\t");
		add_quoted(out, line.at);
		buf_char(out, '\n');
		buf_done(&line);
	}
	buf_text(out, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
		      "\tshift words\n\t((CURRENT--))\n\tcase $words[1] in\n");
	for (size_t i = 0; i < count; i++)
		zsh_command(out, cmds[i]);
	buf_text(out, "\tesac\n}\n_sonde \"$@\"\n");
}

static void fish_option(struct buf *out, const struct cmd *cmd, const struct opt *opt)
{
	bool words = opt->value && takes_words(opt->value);

	if (!opt->what || (!opt_is_shown(opt) && !words))
		return;
	buf_printf(out, "complete -c sonde -n '__fish_seen_subcommand_from %s'", cmd->name);
	if (opt_is_shown(opt))
		buf_printf(out, " -l %s", opt->word);
	if (opt->letter)
		buf_printf(out, " -s %c", opt->letter);
	if (opt_is_shown(opt) && wants_value(opt))
		buf_text(out, " -r");
	if (words) {
		buf_text(out, " -f -a '");
		add_words(out, opt->value);
		buf_char(out, '\'');
	}
	buf_text(out, " -d ");
	add_quoted(out, opt->what);
	buf_char(out, '\n');
}

static void add_fish(struct buf *out)
{
	size_t count;
	const struct cmd *const *cmds = cmd_list(&count);

	buf_text(out, "# sonde(1) for fish: put this into ~/.config/fish/completions/sonde.fish\n");
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "complete -c sonde -n __fish_use_subcommand -f -a %s -d ",
			   cmds[i]->name);
		add_quoted(out, cmds[i]->summary);
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < count; i++) {
		for (const struct opt *opt = cmds[i]->opts; opt->kind != OPT_KIND_END; opt++)
			fish_option(out, cmds[i], opt);
	}
}

static const struct {
	const char *shell;
	void (*add)(struct buf *out);
} shells[] = { { "bash", add_bash }, { "zsh", add_zsh }, { "fish", add_fish } };

static int completion_run(const void *arguments, struct err *err)
{
	const struct completion_args *args = arguments;
	struct buf out = { 0 };
	int code;

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(args->shell, shells[i].shell) != 0)
			continue;
		shells[i].add(&out);
		code = cmd_print(&out, err);
		buf_done(&out);
		return code;
	}
	return err_set(err, ERR_USAGE, "no completion for '%s'; there is bash, zsh and fish",
		       args->shell);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.summary = N_("Print a completion script for your shell"),
	.examples = "  source <(sonde completion bash)\n"
		    "  sonde completion zsh > ~/.zfunc/_sonde\n"
		    "  sonde completion fish > ~/.config/fish/completions/sonde.fish",
	.opts = completion_opts,
	.args_size = sizeof(struct completion_args),
	.run = completion_run,
};
