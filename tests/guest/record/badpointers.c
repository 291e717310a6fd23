// Calls whose pointers are by chance good, bad, at the edge of memory, of read-only memory, or in a file (badpointers ROUNDS SEED).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static unsigned long state, sum;
static char *rw, *ro, *filem, *priv;
static int pfd[2], sv[2], file, dir, ev, ep, tfd, dgram[2];

static unsigned long draw(unsigned long n) {
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static void *ptr(void) {
	switch (draw(12)) {
	case 0: case 1: case 2: return rw + draw(3 * PAGE);
	case 3: return rw + 4 * PAGE - draw(200); // the end of memory
	case 4: return ro + draw(PAGE);
	case 5: return ro - draw(100); // read-only behind writable
	case 6: return filem + draw(PAGE);
	case 7: return priv + draw(2 * PAGE);
	case 8: return filem + PAGE - draw(64);
	case 9: return 0;
	case 10: return (void *)(draw(4) << 46 | draw(1000));
	default: return rw + draw(PAGE) * 2;
	}
}

// fill puts numbers and pointers where structures may be looked for.
static void fill(void) {
	for (int i = 0; i < 8; i++) *(long *)(rw + draw(500) * 8) = draw(3) ? draw(5000) : (long)ptr();
}

#define S(...) ret = syscall(__VA_ARGS__)

static long step(void) {
	long ret = 0;
	int fds[] = {pfd[0], pfd[1], sv[0], sv[1], file, ev, ep, tfd, dgram[0], dgram[1], dir, -1, 999};
	int fd = fds[draw(13)];
	switch (draw(58)) {
	case 0: S(SYS_read, fd, ptr(), draw(500)); break;
	case 1: S(SYS_write, fd == 1 || fd == 2 ? -1 : fd, ptr(), draw(500)); break;
	case 2: S(SYS_pread64, file, ptr(), draw(3000), draw(6000)); break;
	case 3: S(SYS_pwrite64, file, ptr(), draw(3000), draw(6000)); break;
	case 4: { struct iovec v[4]; for (int i = 0; i < 4; i++) v[i] = (struct iovec){ptr(), draw(300)}; S(SYS_readv, fd, v, draw(5)); break; }
	case 5: { struct iovec v[4]; for (int i = 0; i < 4; i++) v[i] = (struct iovec){ptr(), draw(300)}; S(SYS_writev, fd, v, draw(5)); break; }
	case 6: { struct iovec v[3]; for (int i = 0; i < 3; i++) v[i] = (struct iovec){ptr(), draw(2000)}; S(SYS_preadv, file, v, 3, draw(5000), 0); break; }
	case 7: fill(); S(SYS_readv, fd, ptr(), 2); break;
	case 8: S(SYS_fstat, fd, ptr()); break;
	case 9: S(SYS_newfstatat, AT_FDCWD, draw(2) ? "badpointers.data" : ptr(), ptr(), 0); break;
	case 10: S(SYS_statx, AT_FDCWD, "badpointers.data", 0, 0xfff, ptr()); break;
	case 11: S(SYS_uname, ptr()); break;
	case 12: S(SYS_getcwd, ptr(), draw(100)); break;
	case 13: S(SYS_clock_gettime, draw(12), ptr()); break;
	case 14: S(SYS_gettimeofday, ptr(), ptr()); break;
	case 15: S(SYS_times, ptr()); break;
	case 16: S(SYS_getrusage, 0, ptr()); break;
	case 17: S(SYS_sysinfo, ptr()); break;
	case 18: S(SYS_pipe2, ptr(), O_NONBLOCK); if (ret == 0) { ret = 5; for (int i = 30; i < 60; i++) close(i); } break;
	case 19: fill(); S(SYS_poll, ptr(), draw(4), 0); break;
	case 20: { struct timespec t = {0, draw(2000)}; S(SYS_nanosleep, &t, ptr()); break; }
	case 21: S(SYS_select, draw(20), ptr(), ptr(), ptr(), &(struct timeval){0, 0}); break;
	case 22: S(SYS_getdents64, dir, ptr(), draw(1000)); lseek(dir, 0, SEEK_SET); break;
	case 23: S(SYS_readlink, "/proc/self/exe", ptr(), draw(60)); break;
	case 24: S(SYS_getrandom, ptr(), draw(300), 0); break;
	case 25: S(SYS_recvfrom, sv[0], ptr(), draw(300), MSG_DONTWAIT, ptr(), ptr()); break;
	case 26: S(SYS_sendto, sv[1], ptr(), draw(300), MSG_DONTWAIT, 0, 0); break;
	case 27: fill(); S(SYS_recvmsg, dgram[0], ptr(), MSG_DONTWAIT); break;
	case 28: fill(); S(SYS_sendmsg, dgram[1], ptr(), MSG_DONTWAIT); break;
	case 29: { struct iovec v = {ptr(), draw(200)}; struct msghdr h = {ptr(), draw(100), &v, 1, ptr(), draw(100), 0}; S(SYS_recvmsg, dgram[0], &h, MSG_DONTWAIT); break; }
	case 30: { struct iovec v = {ptr(), draw(200)}; struct msghdr h = {0, 0, &v, 1, 0, 0, 0}; S(SYS_sendmsg, dgram[1], &h, MSG_DONTWAIT); break; }
	case 31: S(SYS_epoll_wait, ep, ptr(), 3, 0); break;
	case 32: S(SYS_epoll_ctl, ep, draw(4), fd, ptr()); break;
	case 33: S(SYS_getsockopt, sv[0], SOL_SOCKET, draw(20), ptr(), ptr()); break;
	case 34: S(SYS_getsockname, sv[0], ptr(), ptr()); break;
	case 35: S(SYS_getpeername, sv[0], ptr(), ptr()); break;
	case 36: S(SYS_rt_sigaction, SIGUSR2, 0, ptr(), 8); break;
	case 37: S(SYS_rt_sigprocmask, SIG_BLOCK, 0, ptr(), 8); break;
	case 38: S(SYS_rt_sigpending, ptr(), 8); break;
	case 39: S(SYS_sched_getaffinity, 0, draw(200), ptr()); break;
	case 40: S(SYS_getgroups, draw(30), ptr()); break;
	case 41: S(SYS_getresuid, ptr(), ptr(), ptr()); break;
	case 42: S(SYS_prlimit64, 0, draw(16), 0, ptr()); break;
	case 43: S(SYS_getitimer, draw(3), ptr()); break;
	case 44: S(SYS_timerfd_gettime, tfd, ptr()); break;
	case 45: S(SYS_statfs, "/tmp", ptr()); break;
	case 46: S(SYS_wait4, -1, ptr(), WNOHANG, ptr()); break;
	case 47: S(SYS_getxattr, "badpointers.data", "user.x", ptr(), 100); break;
	case 48: S(SYS_mincore, rw, 4 * PAGE, ptr()); break;
	case 49: S(SYS_get_robust_list, 0, ptr(), ptr()); break;
	case 50: S(SYS_capget, ptr(), ptr()); break;
	case 51: S(SYS_sendfile, sv[1], file, draw(2) ? ptr() : 0, draw(100)); break;
	case 52: S(SYS_splice, file, draw(2) ? ptr() : 0, pfd[1], 0, draw(100), SPLICE_F_NONBLOCK); break;
	case 53: S(SYS_copy_file_range, file, draw(2) ? ptr() : 0, file, draw(2) ? ptr() : 0, draw(50), 0); break;
	case 54: S(SYS_sched_getattr, 0, ptr(), draw(100), 0); break;
	case 55: S(SYS_futex, ptr(), draw(2) ? 1 : 129, 1, 0, 0, 0); break;
	case 56: S(SYS_ppoll, ptr(), draw(3), &(struct timespec){0, 1000}, 0, 8); break;
	case 57: S(SYS_process_vm_readv, getpid(), &(struct iovec){ptr(), draw(900)}, 1, &(struct iovec){ptr(), draw(900)}, 1, 0); break;
	}
	return ret < 0 ? -errno : ret;
}

int main(int argc, char **argv) {
	int rounds = atoi(argv[1]);
	state = atol(argv[2]) * 77;
	char *all = mmap(0, 40 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rw = all + 2 * PAGE;
	mprotect(rw, 4 * PAGE, PROT_READ | PROT_WRITE);
	ro = all + 11 * PAGE;
	mprotect(ro - PAGE, PAGE, PROT_READ | PROT_WRITE);
	mprotect(ro, PAGE, PROT_READ);
	file = open("badpointers.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	dir = open(".", O_RDONLY | O_DIRECTORY);
	int other = open("badpointers.map", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (ftruncate(file, 9000) || ftruncate(other, 9000)) abort();
	filem = mmap(all + 20 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, 0);
	priv = mmap(all + 30 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, other, PAGE);
	if (pipe2(pfd, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, dgram)) abort();
	ev = eventfd(3, EFD_NONBLOCK), ep = epoll_create1(0), tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < rounds; i++) {
		sum = sum * 31 + step();
		syscall(SYS_getppid, sum); // the log has the registers at a call
		for (int k = 0; k < 4 * PAGE; k += 97) sum = sum * 31 + rw[k];
		sum += filem[draw(PAGE)] + priv[draw(2 * PAGE)];
		syscall(SYS_getppid, sum);
	}
	puts("end");
	return 0;
}
