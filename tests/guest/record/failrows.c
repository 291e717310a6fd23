// System calls that write to memory though they fail, or where one would not
// look: socket lengths without an address, waitid's siginfo, a tracer's own
// memory, the counters that netfilter gives back through setsockopt.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h> // before the kernel's
#include <linux/netfilter_ipv4/ip_tables.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long ret, long value) {
	printf("%-24s %ld %ld\n", what, ret == -1 ? -(long)errno : 0, value);
}

static void lengths(void) {
	long ret;
	int s = socket(AF_INET, SOCK_STREAM, 0), pair[2];
	struct sockaddr_in a = {.sin_family = AF_INET};
	bind(s, (void *)&a, sizeof a), listen(s, 5);
	socklen_t n = sizeof a;
	getsockname(s, (void *)&a, &n);
	int c = socket(AF_INET, SOCK_STREAM, 0);
	connect(c, (void *)&a, sizeof a);
	n = 0, ret = getsockname(s, 0, &n);
	say("getsockname of no room", ret, n);
	n = 77, ret = getsockname(s, 0, &n);
	say("getsockname to NULL", ret, n);
	n = 0, ret = getpeername(c, 0, &n);
	say("getpeername of no room", ret, n);
	n = 77, ret = getpeername(c, 0, &n);
	say("getpeername to NULL", ret, n);
	n = 77, ret = accept(s, 0, &n) < 0 ? -1 : 0;
	say("accept to NULL", ret, n);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	write(pair[1], "x", 1);
	n = 77, ret = recvfrom(pair[0], 0, 0, 0, 0, &n);
	say("recvfrom to NULL", ret, n);
	write(pair[1], "x", 1);
	n = 77, ret = recvfrom(pair[0], 0, 0, 0, (void *)&a, &n);
	say("recvfrom", ret, n);
}

static unsigned long sum(const void *p, size_t n) {
	unsigned long s = 0;
	for (size_t i = 0; i < n; i++) s = s * 31 + ((const unsigned char *)p)[i];
	return s;
}

static void waiting(void) {
	unsigned char info[128];
	long ret;
	memset(info, 7, sizeof info);
	ret = syscall(SYS_waitid, P_PIDFD, 999, info, WEXITED, 0);
	say("waitid EBADF", ret, sum(info, sizeof info));
	memset(info, 7, sizeof info);
	ret = syscall(SYS_waitid, P_ALL, 0, info, WEXITED, 0);
	say("waitid ECHILD", ret, sum(info, sizeof info));
	memset(info, 7, sizeof info);
	ret = syscall(SYS_waitid, P_ALL, 0, info, 0, 0);
	say("waitid EINVAL", ret, sum(info, sizeof info));
}

static void tracing(void) {
	pid_t child = fork();
	if (child == 0)
		for (;;) pause();
	int status;
	say("attach", ptrace(PTRACE_ATTACH, child, 0, 0), 0);
	waitpid(child, &status, 0);
	unsigned long fs = 0, gs = 5;
	long ret = syscall(SYS_ptrace, PTRACE_ARCH_PRCTL, child, &fs, 0x1003);
	say("ARCH_GET_FS", ret, fs != 0);
	ret = syscall(SYS_ptrace, PTRACE_ARCH_PRCTL, child, &gs, 0x1004);
	say("ARCH_GET_GS", ret, gs);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

// tables replaces the filter table of a network of the program's own by itself.
static void tables(void) {
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) return;
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	struct ipt_getinfo info = {"filter"};
	socklen_t n = sizeof info;
	if (s < 0 || getsockopt(s, IPPROTO_IP, IPT_SO_GET_INFO, &info, &n)) return; // no such tables
	n = sizeof(struct ipt_get_entries) + info.size;
	struct ipt_get_entries *e = calloc(1, n);
	strcpy(e->name, "filter"), e->size = info.size;
	if (getsockopt(s, IPPROTO_IP, IPT_SO_GET_ENTRIES, e, &n)) return;
	struct ipt_replace *r = calloc(1, sizeof *r + info.size);
	strcpy(r->name, "filter");
	r->valid_hooks = info.valid_hooks, r->num_entries = info.num_entries, r->size = info.size;
	memcpy(r->hook_entry, info.hook_entry, sizeof r->hook_entry);
	memcpy(r->underflow, info.underflow, sizeof r->underflow);
	memcpy(r->entries, e->entrytable, info.size);
	r->num_counters = info.num_entries;
	r->counters = malloc(info.num_entries * sizeof *r->counters);
	memset(r->counters, 9, info.num_entries * sizeof *r->counters);
	long ret = setsockopt(s, IPPROTO_IP, IPT_SO_SET_REPLACE, r, sizeof *r + info.size);
	say("IPT_SO_SET_REPLACE", ret, sum(r->counters, info.num_entries * sizeof *r->counters));
}

int main(void) {
	lengths();
	waiting();
	tracing();
	char *p = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(p, 4096, 102) && *p == 0) *p = 1; // MADV_GUARD_INSTALL, refused when recorded
	tables();
	return 0;
}
