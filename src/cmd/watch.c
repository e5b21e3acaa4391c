#include "cmd/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/i18n.h"
#include "base/mem.h"
#include "cmd/cmd.h"

/* Alternate screen, cursor off; and back. */
static const char ENTER[] = "\33[?1049h\33[?25l";
static const char LEAVE[] = "\33[?25h\33[?1049l";

enum { ROWS_DEFAULT = 24, ROWS_LEAST = 4 };

struct watch {
	bool in_place;
	bool keys; /* standard input is the terminal */
	struct termios before;
	sigset_t mask_before;
	int signals; /* signalfd; -1 none */
};

static void say(const char *text)
{
	(void)fputs(text, stdout);
	(void)fflush(stdout);
}

static void enter(struct watch *watch)
{
	struct termios raw = watch->before;

	if (watch->keys) {
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	say(ENTER);
}

static void leave(struct watch *watch)
{
	say(LEAVE);
	if (watch->keys)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &watch->before);
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	if (watch->in_place && watch->signals >= 0) {
		leave(watch);
		(void)close(watch->signals);
		(void)sigprocmask(SIG_SETMASK, &watch->mask_before, NULL);
	}
	free(watch);
}

int watch_open(bool in_place, struct watch **ret_watch, struct err *err)
{
	OWN(watch_closep) struct watch *watch = mem_zero(sizeof(*watch));
	sigset_t mask;

	watch->signals = -1;
	watch->in_place = in_place;
	if (in_place) {
		watch->keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &watch->before);
		(void)sigemptyset(&mask);
		(void)sigaddset(&mask, SIGWINCH);
		(void)sigaddset(&mask, SIGTSTP);
		(void)sigaddset(&mask, SIGINT);
		(void)sigaddset(&mask, SIGTERM);
		(void)sigaddset(&mask, SIGHUP);
		(void)sigprocmask(SIG_BLOCK, &mask, &watch->mask_before);
		watch->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
		if (watch->signals < 0) {
			(void)sigprocmask(SIG_SETMASK, &watch->mask_before, NULL);
			return err_errno(err, "signalfd");
		}
		enter(watch);
	}
	*ret_watch = STEAL(watch);
	return 0;
}

/* Stop as the shell wants it, with the terminal as it was; go on later. */
static void stop(struct watch *watch)
{
	leave(watch);
	(void)raise(SIGSTOP);
	enter(watch);
}

static enum watch_event take_signal(struct watch *watch)
{
	struct signalfd_siginfo info;

	if (read(watch->signals, &info, sizeof(info)) != sizeof(info))
		return WATCH_TIME;
	if (info.ssi_signo == SIGTSTP)
		stop(watch);
	return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH ? WATCH_RESIZE : WATCH_END;
}

enum watch_event watch_wait(struct watch *watch, int64_t until_ns, char *ret_key)
{
	struct pollfd fds[2] = { { .fd = watch->signals, .events = POLLIN },
				 { .fd = watch->keys ? STDIN_FILENO : -1, .events = POLLIN } };

	for (;;) {
		int64_t left_ns = until_ns - clock_steady_ns();
		struct timespec left = { left_ns / 1000000000, left_ns % 1000000000 };

		if (left_ns <= 0)
			return WATCH_TIME;
		if (ppoll(fds, 2, &left, NULL) <= 0)
			continue;
		if (fds[0].revents)
			return take_signal(watch);
		if (fds[1].revents)
			return read(STDIN_FILENO, ret_key, 1) == 1 ? WATCH_KEY : WATCH_END;
	}
}

static int rows(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < ROWS_LEAST)
		return ROWS_DEFAULT;
	return size.ws_row;
}

/* Each line is cleared behind its end, then what is below: nothing flickers. */
int watch_draw(struct watch *watch, struct buf *page, struct err *err)
{
	struct buf screen = { 0 };
	const char *at = page->at ? page->at : "";
	int left = rows(), lines = 0, code;

	if (!watch->in_place)
		return cmd_print(page, err);
	for (const char *c = at; *c; c++)
		lines += *c == '\n';
	buf_text(&screen, "\33[H");
	for (; *at && lines > 0; lines--) {
		size_t len = strcspn(at, "\n");

		if (left == 1 && lines > 1) {
			buf_printf(&screen, _("%d more lines"), lines);
			break;
		}
		buf_add(&screen, at, len);
		buf_text(&screen, "\33[K");
		if (--left)
			buf_char(&screen, '\n');
		at += len + 1;
	}
	buf_text(&screen, "\33[J");
	code = cmd_print(&screen, err);
	buf_done(&screen);
	buf_clear(page);
	return code;
}
