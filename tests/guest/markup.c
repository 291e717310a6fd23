// A crash in a program whose names, arguments, files and memory are what a page or a terminal could mistake for its own.
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BIDI "\xe2\x80\xae"
#define SCRIPT "</style></title><script>alert('%s')</script><img src=\"http://198.51.100.1/x\" onerror=alert(1)>"

struct member {
	const char *text;
	struct member *next;
};

static char long_text[5000];
volatile char *nowhere;

__attribute__((noinline)) void crash(const char *argument, struct member *m) __asm__("\"<script>alert('name')</script><b title='\"");

#line 21 "</script><script>alert('file')</script>\"'&\033[31m.c"
__attribute__((noinline)) void crash(const char *argument, struct member *m) {
	nowhere = (char *)(long)(strlen(argument) + m->text[0]);
	*nowhere = 1;
}

int main(int argc, char **argv) {
	struct member here = {SCRIPT "\033]0;title\a" BIDI "\xff\xfe{{.}}", 0};
	memset(long_text, '<', sizeof long_text - 1);
	prctl(PR_SET_NAME, "<b>\033[1m&'\"");
	int ignored = write(-1, SCRIPT, sizeof SCRIPT - 1);
	(void)ignored;
	crash(argc > 1 ? argv[1] : long_text, &here);
	return 0;
}
