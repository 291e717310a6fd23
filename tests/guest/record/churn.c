// Threads that do by chance what programs do (churn THREADS ROUNDS SEED): memory, files, pipes and sockets, waits, clocks,
// signals to each other, timers, and other processes.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, SLOTS = 64 };
static int rounds, threads;
static _Atomic long total;
static pthread_t thread[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long ready;
static int pipes[2], pair[2], ev, ep, tfd;
static unsigned char *shared;
static sem_t sem;
extern char **environ;

struct me { unsigned long state; int no; void *slot[SLOTS]; size_t size[SLOTS]; long sum; int sig; };
static __thread struct me *self;

static unsigned long draw(struct me *m, unsigned long n) {
	m->state = m->state * 6364136223846793005 + 1442695040888963407;
	return (m->state >> 33) % n;
}

static void onSignal(int n, siginfo_t *i, void *u) {
	int e = errno;
	ucontext_t *c = u;
	atomic_fetch_add(&total, n + i->si_code + (c->uc_mcontext.gregs[REG_RIP] & 1));
	if (self) self->sig++;
	if (n == SIGUSR2) getpid();
	errno = e;
}

static void heap(struct me *m) {
	int k = draw(m, SLOTS);
	if (m->slot[k] && draw(m, 3)) {
		for (size_t i = 0; i < m->size[k]; i += 97) m->sum += ((unsigned char *)m->slot[k])[i];
		free(m->slot[k]);
		m->slot[k] = 0;
	} else {
		size_t n = draw(m, 20) ? draw(m, 3000) + 1 : draw(m, 1 << 20) + 1;
		m->slot[k] = realloc(m->slot[k], n);
		m->size[k] = n;
		memset(m->slot[k], m->state, n);
	}
}

static void memory(struct me *m) {
	size_t n = (1 + draw(m, 20)) * PAGE;
	unsigned char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (draw(m, 3) ? 0 : MAP_POPULATE), -1, 0);
	if (p == MAP_FAILED) abort();
	for (size_t i = 0; i < n; i += 1 + draw(m, 2 * PAGE)) p[i] = i + m->state;
	switch (draw(m, 6)) {
	case 0: mprotect(p, PAGE, PROT_READ); break;
	case 1: madvise(p, n, MADV_DONTNEED); break;
	case 2: p = mremap(p, n, n + PAGE * 3, MREMAP_MAYMOVE); n += PAGE * 3; p[n - 1] = 7; break;
	case 3: madvise(p, n, MADV_FREE); break;
	case 4: if (n > PAGE) { munmap(p, PAGE); p += PAGE; n -= PAGE; } break;
	}
	for (size_t i = 0; i < n; i += 511) m->sum += p[i];
	munmap(p, n);
}

static void files(struct me *m) {
	char name[64], b[5000];
	struct stat st;
	snprintf(name, sizeof name, "churn.%d.%lu", m->no, draw(m, 4));
	int fd = open(name, O_RDWR | O_CREAT | (draw(m, 4) ? 0 : O_TRUNC) | O_CLOEXEC, 0600);
	if (fd < 0) abort();
	memset(b, m->state, sizeof b);
	struct iovec v[3] = {{b, draw(m, 100)}, {b + 100, draw(m, 1000)}, {b + 1200, draw(m, 3000)}};
	switch (draw(m, 9)) {
	case 0: m->sum += write(fd, b, draw(m, sizeof b)); break;
	case 1: m->sum += pwrite(fd, b, draw(m, sizeof b), draw(m, 10000)); break;
	case 2: m->sum += writev(fd, v, 3); break;
	case 3: m->sum += read(fd, b, sizeof b) + b[17]; break;
	case 4: m->sum += preadv(fd, v, 3, draw(m, 8000)) + b[1300]; break;
	case 5: ftruncate(fd, draw(m, 9000)); break;
	case 6: m->sum += lseek(fd, draw(m, 100), SEEK_END); break;
	case 7: { unsigned char *p = mmap(0, 2 * PAGE, PROT_READ, draw(m, 2) ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		if (!fstat(fd, &st) && p != MAP_FAILED) for (long i = 0; i < st.st_size && i < 2 * PAGE; i += 100) m->sum += p[i];
		munmap(p, 2 * PAGE); break; }
	case 8: { off_t at = 0; m->sum += sendfile(pair[1], fd, &at, 200) > 0; break; }
	}
	if (!fstat(fd, &st)) m->sum += st.st_size;
	close(fd);
	if (draw(m, 6) == 0) unlink(name);
}

static void talk(struct me *m) {
	char b[300] = "";
	struct pollfd pf[2] = {{pipes[0], POLLIN}, {pair[0], POLLIN}};
	uint64_t one = 1;
	switch (draw(m, 10)) {
	case 0: m->sum += write(pipes[1], &m->state, sizeof m->state); break;
	case 1: m->sum += read(pipes[0], b, sizeof b); break;
	case 2: m->sum += send(pair[1], b, draw(m, 200), MSG_DONTWAIT | MSG_NOSIGNAL); break;
	case 3: m->sum += recv(pair[0], b, sizeof b, MSG_DONTWAIT); break;
	case 4: m->sum += poll(pf, 2, draw(m, 3)); break;
	case 5: m->sum += write(ev, &one, 8); break;
	case 6: m->sum += read(ev, &one, 8) + one; break;
	case 7: { struct epoll_event e[4]; m->sum += epoll_wait(ep, e, 4, draw(m, 2)); break; }
	case 8: { struct itimerspec t = {{0, 0}, {0, 100000 + draw(m, 900000)}}; timerfd_settime(tfd, 0, &t, 0); break; }
	case 9: m->sum += read(tfd, &one, 8); break;
	}
}

static void sync_(struct me *m) {
	struct timespec t;
	switch (draw(m, 6)) {
	case 0: pthread_mutex_lock(&lock); ready++; shared[draw(m, PAGE)]++; pthread_cond_signal(&cond); pthread_mutex_unlock(&lock); break;
	case 1: pthread_mutex_lock(&lock); clock_gettime(CLOCK_REALTIME, &t); t.tv_nsec += draw(m, 500000);
		if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
		if (ready == 0) m->sum += pthread_cond_timedwait(&cond, &lock, &t); else ready--;
		pthread_mutex_unlock(&lock); break;
	case 2: sem_post(&sem); break;
	case 3: m->sum += sem_trywait(&sem); break;
	case 4: sched_yield(); break;
	case 5: t = (struct timespec){0, draw(m, 300000)}; nanosleep(&t, 0); break;
	}
}

static void signals(struct me *m) {
	sigset_t s, old;
	sigemptyset(&s); sigaddset(&s, SIGUSR1);
	switch (draw(m, 6)) {
	case 0: pthread_kill(thread[draw(m, threads)], SIGUSR1); break;
	case 1: { union sigval v = {.sival_int = m->no}; pthread_sigqueue(thread[draw(m, threads)], SIGRTMIN + 1, v); break; }
	case 2: kill(getpid(), SIGUSR2); break;
	case 3: pthread_sigmask(SIG_BLOCK, &s, &old); heap(m); pthread_kill(pthread_self(), SIGUSR1); heap(m); pthread_sigmask(SIG_SETMASK, &old, 0); break;
	case 4: { struct itimerval t = {{0, 0}, {0, 200 + draw(m, 800)}}; setitimer(draw(m, 2) ? ITIMER_REAL : ITIMER_PROF, &t, 0); break; }
	case 5: { struct timespec t = {0, draw(m, 200000)}; pthread_sigmask(SIG_BLOCK, &s, &old); pthread_kill(pthread_self(), SIGUSR1); siginfo_t i; m->sum += sigtimedwait(&s, &i, &t); pthread_sigmask(SIG_SETMASK, &old, 0); break; }
	}
}

static void *leaf(void *p) { struct me m = {.state = (unsigned long)p, .no = 99}; self = &m; for (int i = 0; i < 5; i++) heap(&m); for (int i = 0; i < SLOTS; i++) free(m.slot[i]); return (void *)m.sum; }

static void processes(struct me *m) {
	int st;
	pid_t p;
	switch (draw(m, 4)) {
	case 0: { pthread_t t; void *r; if (pthread_create(&t, 0, leaf, (void *)m->state)) break; pthread_join(t, &r); m->sum += (long)r; break; }
	case 1: p = fork(); if (p == 0) { shared[PAGE + draw(m, PAGE)] += 3; _exit(draw(m, 50)); } waitpid(p, &st, 0); m->sum += st; break;
	case 2: { char *a[] = {"/bin/true", 0}; if (!posix_spawn(&p, a[0], 0, 0, a, environ)) { waitpid(p, &st, 0); m->sum += st; } break; }
	case 3: p = vfork(); if (p == 0) _exit(3); waitpid(p, &st, 0); m->sum += st; break;
	}
}

static void look(struct me *m) {
	struct timespec t; struct timeval v; char b[200];
	switch (draw(m, 8)) {
	case 0: clock_gettime(CLOCK_MONOTONIC, &t); m->sum += t.tv_nsec; break;
	case 1: gettimeofday(&v, 0); m->sum += v.tv_usec; break;
	case 2: m->sum += getpid() + syscall(SYS_gettid) + getppid(); break;
	case 3: { DIR *d = opendir("."); struct dirent *e; while (d && (e = readdir(d))) m->sum += e->d_name[0]; if (d) closedir(d); break; }
	case 4: m->sum += readlink("/proc/self/exe", b, sizeof b); break;
	case 5: { int fd = open("/proc/self/stat", O_RDONLY); m->sum += read(fd, b, sizeof b); close(fd); break; }
	case 6: m->sum += __builtin_ia32_rdtsc() & 1; break;
	case 7: m->sum += time(0) + sched_getcpu(); break;
	}
}

static void *run(void *p) {
	struct me *m = p;
	self = m;
	for (int i = 0; i < rounds; i++) {
		switch (draw(m, 40)) {
		case 0 ... 9: heap(m); break;
		case 10 ... 13: memory(m); break;
		case 14 ... 19: files(m); break;
		case 20 ... 25: talk(m); break;
		case 26 ... 29: sync_(m); break;
		case 30 ... 32: signals(m); break;
		case 33: if (draw(m, 4) == 0) processes(m); break;
		default: look(m); break;
		}
	}
	return 0;
}

int main(int argc, char **argv) {
	struct me *m;
	struct sigaction a = {.sa_sigaction = onSignal, .sa_flags = SA_SIGINFO | SA_RESTART};
	int n[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGPROF, SIGRTMIN + 1, SIGPIPE};
	threads = atoi(argv[1]), rounds = atoi(argv[2]);
	unsigned long seed = argc > 3 ? atol(argv[3]) : 1;
	for (unsigned i = 0; i < sizeof n / sizeof *n; i++) sigaction(n[i], &a, 0);
	if (pipe2(pipes, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
	ev = eventfd(0, EFD_NONBLOCK); ep = epoll_create1(0); tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 5};
	epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e); epoll_ctl(ep, EPOLL_CTL_ADD, tfd, &e);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	shared = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(&sem, 0, 0);
	for (int i = 0; i < threads; i++) thread[i] = pthread_self();
	m = calloc(threads, sizeof *m);
	for (int i = 0; i < threads; i++) m[i].state = seed * 977 + i, m[i].no = i;
	for (int i = 1; i < threads; i++) if (pthread_create(&thread[i], 0, run, &m[i])) abort();
	run(&m[0]);
	for (int i = 1; i < threads; i++) pthread_join(thread[i], 0);
	for (int i = 0; i < threads; i++) atomic_fetch_add(&total, m[i].sum);
	puts("end");
	return 0;
}
