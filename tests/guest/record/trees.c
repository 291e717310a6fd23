// Programs of several processes, each a case of what recording them must get right:
//   trees CASE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

// say writes a line with one call, so that those of different processes are whole.
static void say(const char *f, ...) {
	char b[256];
	va_list v;
	va_start(v, f);
	int n = vsnprintf(b, sizeof b, f, v);
	va_end(v);
	if (write(1, b, n) != n) _exit(99);
}

static pid_t child(void (*f)(int), int i) {
	pid_t p = fork();
	if (p < 0) abort();
	if (p == 0) { f(i); _exit(i); }
	return p;
}

static void reap(pid_t p, const char *what) {
	int st;
	if (waitpid(p, &st, 0) != p) abort();
	if (WIFSIGNALED(st)) say("%s: signal %d\n", what, WTERMSIG(st));
	else say("%s: code %d\n", what, WEXITSTATUS(st));
}

static void nap(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	if (nanosleep(&t, 0)) say("nanosleep: %s\n", strerror(errno));
}

static long work(int n) {
	unsigned long x = n;
	for (int i = 0; i < n; i++) x = x * 6364136223846793005 + 1442695040888963407;
	return x >> 40;
}

static void *shared(size_t n) {
	void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) abort();
	return p;
}

static void start(pthread_t *t, void *(*f)(void *), void *a) { if (pthread_create(t, 0, f, a)) abort(); }

// One child, which allocates, writes and computes.
static void oneChild(int i) {
	char *p = malloc(300000);
	memset(p, i, 300000);
	say("child %d %ld\n", p[1234], work(20000));
}
static void forkOne(void) { reap(child(oneChild, 5), "child"); say("parent %ld\n", work(30000)); }

// Each makes the next.
static void link_(int i) {
	say("link %d\n", i);
	if (i > 0) { char b[32]; snprintf(b, sizeof b, "link %d", i - 1); reap(child(link_, i - 1), b); }
}
static void chain(void) { link_(6); }

// Many at a time.
static void brief(int i) { work(500 * i); }
static void many(void) {
	pid_t p[50];
	long sum = 0;
	for (int i = 0; i < 50; i++) p[i] = child(brief, i);
	for (int i = 0; i < 50; i++) { int st; if (waitpid(p[i], &st, 0) != p[i]) abort(); sum += WEXITSTATUS(st); }
	say("%ld\n", sum);
}

// vfork and a program; vfork and none.
static void vforkExec(void) {
	for (int i = 0; i < 3; i++) {
		pid_t p = vfork();
		if (p == 0) { execl("/bin/echo", "echo", "executed", (char *)0); _exit(1); }
		reap(p, "vfork");
	}
}
static void vforkFails(void) {
	volatile long mine[64] = {0};
	pid_t p = vfork();
	if (p == 0) {
		for (int i = 0; i < 64; i++) mine[i] = i * i;
		execl("/nonexistent/program", "program", (char *)0);
		mine[0] = errno;
		_exit(9);
	}
	long sum = 0;
	for (int i = 0; i < 64; i++) sum += mine[i];
	say("%ld\n", sum);
	reap(p, "vfork");
}

// posix_spawn, which is CLONE_VM|CLONE_VFORK on a stack of its own.
static void spawns(void) {
	char *a[] = {"echo", "spawned", 0}, *b[] = {"none", 0};
	posix_spawn_file_actions_t acts;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, 1, 2);
	pid_t p;
	for (int i = 0; i < 3; i++) {
		if (posix_spawnp(&p, "echo", &acts, 0, a, environ)) abort();
		reap(p, "spawn");
	}
	say("%s\n", strerror(posix_spawn(&p, "/nonexistent/program", 0, 0, b, environ)));
	say("%s\n", strerror(posix_spawn(&p, "/etc/passwd", 0, 0, b, environ)));
}

// system and popen.
static void shells(void) {
	say("system %d\n", WEXITSTATUS(system("echo from the shell; (exit 4); x=$(echo sub | tr a-z A-Z); echo $x; exit 3")));
	FILE *f = popen("for i in 1 2 3; do echo line $i; done | sort -r", "r");
	char b[100];
	while (fgets(b, sizeof b, f)) say("popen: %s", b);
	say("pclose %d\n", pclose(f));
	if (!(f = popen("cat", "w"))) abort();
	fprintf(f, "to cat\n");
	say("pclose %d\n", pclose(f));
}

// A child that shares all memory and runs on beside its parent.
static char stack[65536] __attribute__((aligned(16)));
static atomic_int flag;
static volatile long box[512];
static int runsOn(void *arg) {
	for (int i = 0; i < 100; i++) { box[i] = i; struct timespec t = {0, 1000000}; nanosleep(&t, 0); }
	flag = 1;
	return 6;
}
static void cloneVM(void) {
	pid_t p = clone(runsOn, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
	long turns = 0, sum = 0;
	while (!flag) { turns++; usleep(500); box[200] = turns; }
	for (int i = 0; i < 100; i++) sum += box[i];
	say("%ld\n", sum);
	reap(p, "clone");
}
// One that executes a program while its parent goes on.
static int execs(void *arg) { struct timespec t = {0, 5000000}; nanosleep(&t, 0); box[1] = 11; execl("/bin/echo", "echo", "executed", (char *)0); return 1; }
static void cloneVMExec(void) {
	pid_t p = clone(execs, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
	for (int i = 0; i < 20; i++) { box[2] += i; usleep(500); }
	reap(p, "clone");
	say("%ld %ld\n", box[1], box[2]);
}

// fork while other threads allocate, and from a thread that is not the first.
static atomic_int stop;
static void *allocator(void *arg) {
	while (!stop) { void *p[20]; for (int i = 0; i < 20; i++) p[i] = malloc(100 + 100 * i); for (int i = 0; i < 20; i++) free(p[i]); usleep(100); }
	return 0;
}
static void allocates(int i) { char *p = malloc(5000); memset(p, 1, 5000); free(p); }
static void forkLocked(void) {
	pthread_t t[3];
	for (int i = 0; i < 3; i++) start(&t[i], allocator, 0);
	for (int i = 0; i < 5; i++) reap(child(allocates, i), "child");
	stop = 1;
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
}
static void threadInChild(int i) { pthread_t t; stop = 1; start(&t, allocator, 0); pthread_join(t, 0); }
static void *forker(void *arg) { reap(child(threadInChild, 3), "child"); return 0; }
static void forkThread(void) {
	pthread_t t[2];
	start(&t[0], allocator, 0);
	start(&t[1], forker, 0);
	pthread_join(t[1], 0);
	stop = 1;
	pthread_join(t[0], 0);
}
// A program executed by a thread of a forked child, which is not its first.
static void *execThread(void *arg) { usleep(2000); execl("/bin/echo", "echo", "executed by a thread", (char *)0); abort(); }
static void execInThread(int i) { pthread_t t; start(&t, execThread, 0); pause(); }
static void forkExecThread(void) { reap(child(execInThread, 3), "child"); }

// Pipes between processes.
static int fds[2], back[2];
static void echoes(int i) {
	char b[64];
	ssize_t n;
	close(fds[1]);
	while ((n = read(fds[0], b, sizeof b)) > 0) { for (int k = 0; k < n; k++) b[k]++; if (write(back[1], b, n) != n) abort(); }
}
static void pipes(void) {
	if (pipe(fds) || pipe(back)) abort();
	pid_t p = child(echoes, 0);
	char b[64];
	long sum = 0;
	for (int i = 0; i < 200; i++) {
		memset(b, i, sizeof b);
		if (write(fds[1], b, 1 + i % 64) < 1 || read(back[0], b, sizeof b) < 1) abort();
		sum += (unsigned char)b[0];
	}
	close(fds[1]);
	reap(p, "echo");
	say("%ld\n", sum);
}

// Locks in memory that processes share.
struct sync { pthread_mutex_t m; pthread_cond_t c; sem_t s; long n, turn; atomic_int spin; };
static struct sync *sync_;
static void makeSync(void) {
	pthread_mutexattr_t a;
	pthread_condattr_t b;
	sync_ = shared(sizeof *sync_);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_condattr_init(&b);
	pthread_condattr_setpshared(&b, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&sync_->m, &a);
	pthread_cond_init(&sync_->c, &b);
	sem_init(&sync_->s, 1, 1);
}
static void locker(int i) { for (int k = 0; k < 100; k++) { pthread_mutex_lock(&sync_->m); sync_->n += i; if (k % 20 == 0) sched_yield(); pthread_mutex_unlock(&sync_->m); } }
static void waiter(int i) {
	for (int k = 0; k < 10; k++) {
		pthread_mutex_lock(&sync_->m);
		while (sync_->turn % 4 != i) pthread_cond_wait(&sync_->c, &sync_->m);
		sync_->turn++;
		pthread_cond_broadcast(&sync_->c);
		pthread_mutex_unlock(&sync_->m);
	}
}
static void semwaiter(int i) { for (int k = 0; k < 50; k++) { sem_wait(&sync_->s); long n = sync_->n; if (k % 10 == 0) sched_yield(); sync_->n = n + 1; sem_post(&sync_->s); } }
static void spinner(int i) {
	for (int k = 0; k < 30; k++) {
		while (atomic_exchange(&sync_->spin, 1)) __builtin_ia32_pause();
		sync_->n += i;
		if (k % 10 == 0) getppid();
		atomic_store(&sync_->spin, 0);
	}
}
static void four(void (*f)(int)) {
	makeSync();
	pid_t p[4];
	for (int i = 0; i < 4; i++) p[i] = child(f, i);
	for (int i = 0; i < 4; i++) reap(p[i], "child");
	say("%ld %ld\n", sync_->n, sync_->turn);
}
static void mutexes(void) { four(locker); }
static void conds(void) { four(waiter); }
static void sems(void) { four(semwaiter); }
static void spins(void) { four(spinner); }

// Pages that four processes share. Each stores to them, and drops, protects, moves and maps its view of them all the time.
enum { PAGES = 96, PAGES_SIZE = PAGES * 4096 };
static int pagesFile;
static char *mapPages(char *at) {
	char *m = mmap(at, PAGES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), pagesFile, 0);
	if (m == MAP_FAILED) abort();
	return m;
}
static void adds(int page) { *(volatile long *)(mapPages(0) + page * 4096) += 1000; }
static char *changesView(char *m, char *other, int how, int page) {
	long v = page;
	int ends[2];
	switch (how) {
	case 0: if (madvise(m, PAGES_SIZE, MADV_DONTNEED)) abort(); break;
	case 1:
		if (mprotect(m, PAGES_SIZE, PROT_READ)) abort();
		pthread_mutex_unlock(&sync_->m);
		sched_yield();
		pthread_mutex_lock(&sync_->m);
		if (mprotect(m, PAGES_SIZE, PROT_READ | PROT_WRITE)) abort();
		break;
	case 2: if (mremap(m, PAGES_SIZE, PAGES_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other) != other) abort(); return other;
	case 3: if (munmap(m, PAGES_SIZE)) abort(); return mapPages(m);
	case 4: if (pipe(ends) || write(ends[1], &v, 8) != 8 || read(ends[0], m + page * 4096 + 8, 8) != 8) abort(); close(ends[0]); close(ends[1]); break;
	case 5: if (pwrite(pagesFile, &v, 8, page * 4096 + 16) != 8) abort(); break;
	case 6: if (waitpid(child(adds, page), 0, 0) < 0) abort(); break;
	case 7: mapPages(m + PAGES_SIZE); *(volatile long *)(m + PAGES_SIZE + page * 4096 + 24) = v; munmap(m + PAGES_SIZE, PAGES_SIZE); break;
	}
	return m;
}
static void remapper(int i) {
	char *room = mmap(0, 4 * PAGES_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *m = mapPages(room);
	unsigned long x = i + 1;
	for (int k = 0; k < 120; k++) {
		pthread_mutex_lock(&sync_->m);
		for (int j = 0; j < 3; j++) {
			x = x * 6364136223846793005 + 1442695040888963407;
			*(volatile long *)(m + (x >> 33) % PAGES * 4096) += x >> 56;
		}
		m = changesView(m, m == room ? room + 2 * PAGES_SIZE : room, (x >> 20) % 10, (x >> 40) % PAGES);
		pthread_mutex_unlock(&sync_->m);
	}
}
static void remapsFile(int fd) {
	pagesFile = fd;
	if (ftruncate(pagesFile, PAGES_SIZE)) abort();
	four(remapper);
	unsigned long sum = 0;
	char *m = mapPages(0);
	for (int i = 0; i < PAGES; i++)
		for (int k = 0; k < 4; k++) sum = sum * 31 + ((long *)(m + 4096 * i))[k];
	say("%lx\n", sum);
}
static void remaps(void) { remapsFile(memfd_create("pages", 0)); }
static void remapsNamed(void) {
	char name[64];
	snprintf(name, sizeof name, "/trees-%d", getpid());
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || shm_unlink(name)) abort();
	remapsFile(fd);
}

// A file that a second process maps later, and a flag in it that the first spins on.
static char path[64];
static volatile int *mapFile(void) {
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, 8192)) abort();
	volatile int *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) abort();
	close(fd);
	return p;
}
static void mapsLater(int i) {
	nap(10);
	volatile int *p = mapFile();
	while (p[2] != 41) ; // on a busy machine it is not that much later
	p[1] = p[2] + 1;
	p[0] = 1;
	while (p[0] != 2) ;
	p[1025] = 7;
}
static void later(void) {
	snprintf(path, sizeof path, "/tmp/trees-%d", getpid());
	pid_t p = child(mapsLater, 0);
	volatile int *m = mapFile();
	m[2] = 41;
	while (m[0] != 1) ;
	m[0] = 2;
	reap(p, "child");
	say("%d %d\n", m[1], m[1025]);
	unlink(path);
}

// A robust mutex whose owner, another process, ends or is killed.
static void owns(int i) { pthread_mutex_lock(&sync_->m); sync_->n = 5 + i; if (i) _exit(0); for (;;) pause(); }
static void robust(void) {
	makeSync();
	for (int i = 0; i < 2; i++) {
		pthread_mutexattr_t a;
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_init(&sync_->m, &a);
		sync_->n = 0;
		pid_t p = child(owns, i);
		while (!*(volatile long *)&sync_->n) usleep(500);
		if (!i) kill(p, SIGKILL);
		say("%s\n", strerror(pthread_mutex_lock(&sync_->m)));
		pthread_mutex_consistent(&sync_->m);
		pthread_mutex_unlock(&sync_->m);
		reap(p, "owner");
	}
}
// Two processes pass a turn by stores alone, with no call.
static void turns(int i) {
	volatile long *turn = &sync_->turn;
	for (int k = 0; k < 6; k++) { while (*turn % 2 != i) __builtin_ia32_pause(); sync_->n += k; *turn = *turn + 1; }
}
static void spinTurns(void) { makeSync(); pid_t p = child(turns, 1); turns(0); reap(p, "child"); say("%ld %ld\n", sync_->n, sync_->turn); }
// Children that share all memory and are killed, in a call, in their own code, and by themselves.
static int sleeps(void *arg) { for (;;) pause(); }
static int loops(void *arg) { for (;;) { box[100]++; for (int k = 0; k < 8; k++) __builtin_ia32_pause(); } }
static void killedVM(void) {
	for (int i = 0; i < 2; i++) {
		pid_t p = clone(i ? loops : sleeps, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
		nap(10);
		kill(p, i ? SIGKILL : SIGTERM);
		reap(p, "child");
	}
	for (int i = 0; i < 2; i++) {
		pid_t p = vfork();
		if (p == 0) { box[101] = i; kill(getpid(), i ? SIGKILL : SIGTERM); _exit(1); }
		reap(p, "vfork");
	}
	say("%ld\n", work(1000));
}
// A process writes a file that another has mapped; and one writes another's memory.
static void writesFile(int i) {
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	nap(5);
	for (int n = 1; n <= 60; n++) { box[300] += work(200000 + n); if (pwrite(fd, &n, sizeof n, 200) != sizeof n) abort(); }
	if (pwrite(fd, "written", 7, 100) != 7) abort();
	close(fd);
}
static void pwrites(void) {
	snprintf(path, sizeof path, "/tmp/trees-%d", getpid());
	pid_t p = child(writesFile, 0); // which has it not mapped
	volatile char *m = (volatile char *)mapFile();
	volatile int *n = (volatile int *)(m + 200);
	while (m[100] != 'w') syscall(SYS_getppid, *n);
	reap(p, "writer");
	say("%s %d\n", (char *)m + 100, *n);
	unlink(path);
}
// The target waits in a call first, and then spins on a word of its own; one page is read-only.
static const char fixed[8192] __attribute__((aligned(4096))) = "as it was built";
static void toParent(volatile void *at, const void *from, size_t n) {
	struct iovec a = {(void *)from, n}, b[2] = {{(void *)at, 3}, {(char *)at + 3, n - 3}};
	ssize_t did = process_vm_writev(getppid(), &a, 1, b, 2, 0);
	if (did != n) say("process_vm_writev: %zd %s\n", did, strerror(errno));
}
static void remoteWrites(int i) {
	long one = 1;
	nap(10);
	toParent(box + 50, "remote", 7);
	kill(getppid(), SIGUSR1);
	nap(10);
	for (int k = 0; k < 20; k++) { box[300] += work(200000 + k); toParent(box + 55 + k, &one, sizeof one); }
	snprintf(path, sizeof path, "/proc/%d/mem", getppid());
	int fd = open(path, O_RDWR);
	if (pwrite(fd, "by pwrite", 10, (off_t)fixed) != 10) say("pwrite: %s\n", strerror(errno));
	lseek(fd, (off_t)(box + 90), SEEK_SET);
	if (write(fd, "by write", 9) != 9) say("write: %s\n", strerror(errno));
	toParent(box + 80, &one, sizeof one);
}
static void caught(int sig) {}
static void remote(void) {
	struct sigaction a = {.sa_handler = caught};
	sigaction(SIGUSR1, &a, 0);
	pid_t p = child(remoteWrites, 0);
	pause();
	say("%s, %s\n", (char *)(box + 50), (char *)fixed);
	long sum = 0;
	while (!box[80]) for (int k = 0; k < 20; k++) sum += box[55 + k];
	reap(p, "writer");
	for (sum = 0, p = 0; p < 20; p++) sum += box[55 + p];
	say("%ld, %s, %s\n", sum, (char *)(box + 90), (char *)fixed);
}
// Namespaces, and a process that nobody may look at.
static void namespaces(void) {
	pid_t p = fork();
	if (p == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID)) say("unshare: %s\n", strerror(errno));
		pid_t q = fork();
		if (q == 0) { say("first in its namespace: %d\n", getpid()); _exit(3); }
		reap(q, "child");
		_exit(0);
	}
	reap(p, "outer");
}

// Semaphores by name, and System V memory.
static void named(int i) { sem_t *s = sem_open(path, 0); if (s == SEM_FAILED) abort(); for (int k = 0; k < 20; k++) sem_post(s); sem_close(s); }
static void semOpen(void) {
	snprintf(path, sizeof path, "/trees-%d", getpid());
	sem_t *s = sem_open(path, O_CREAT | O_EXCL, 0600, 0);
	if (s == SEM_FAILED) abort();
	pid_t p = child(named, 0);
	for (int k = 0; k < 20; k++) sem_wait(s);
	reap(p, "child");
	int v;
	sem_getvalue(s, &v);
	say("%d\n", v);
	sem_unlink(path);
}
static int segment;
static void attaches(int i) { volatile int *p = shmat(segment, 0, 0); p[5]++; p[0] = 1; while (p[0] != 2) usleep(200); p[7] = p[6]; shmdt((void *)p); }
static void sysv(void) {
	segment = shmget(IPC_PRIVATE, 20000, IPC_CREAT | 0600);
	volatile int *p = shmat(segment, 0, 0);
	p[5] = 10;
	pid_t c = child(attaches, 0);
	while (p[0] != 1) usleep(200);
	p[6] = 77;
	p[0] = 2;
	reap(c, "child");
	say("%d %d\n", p[5], p[7]);
	shmctl(segment, IPC_RMID, 0);
}

// A parent that ends before its children.
static void orphan(int i) { nap(20 + 5 * i); say("orphan %d\n", i); }
static void daemon_(void) { for (int i = 0; i < 3; i++) child(orphan, i); say("parent\n"); exit(4); }

// Children that are killed.
static void waits(int i) { for (;;) pause(); }
static void computes(int i) { for (;;) { work(1000); getppid(); } }
static void killed(void) {
	static const int sig[] = {SIGKILL, SIGTERM};
	for (int i = 0; i < 4; i++) {
		pid_t p = child(i < 2 ? waits : computes, 0);
		nap(5);
		kill(p, sig[i % 2]);
		reap(p, "child");
	}
}

// Children that are reaped in a handler.
static atomic_int reaped;
static void reaper(int sig) { int e = errno; while (waitpid(-1, 0, WNOHANG) > 0) reaped++; errno = e; }
static void handler(void) {
	struct sigaction a = {.sa_handler = reaper, .sa_flags = SA_RESTART};
	sigaction(SIGCHLD, &a, 0);
	for (int i = 0; i < 8; i++) child(brief, i);
	while (reaped < 8) usleep(500);
	say("%d\n", reaped);
}

// Children that stop and go on.
static void stops(void) {
	pid_t p = child(waits, 0);
	int st;
	for (int i = 0; i < 3; i++) {
		kill(p, SIGSTOP);
		if (wait4(p, &st, WUNTRACED, 0) != p) abort();
		say("stopped %d %d\n", WIFSTOPPED(st), WSTOPSIG(st));
		kill(p, SIGCONT);
		if (waitpid(p, &st, WCONTINUED) != p) abort();
		say("continued %d\n", WIFCONTINUED(st));
	}
	kill(p, SIGTERM);
	reap(p, "child");
}

// One that is stopped by a third while it computes, and shares memory with another.
static void stopper(int i) {
	int p;
	if (read(fds[0], &p, sizeof p) != sizeof p) abort();
	for (int k = 0; k < 3; k++) { nap(13); kill(p, SIGSTOP); nap(7); kill(p, SIGCONT); }
}
static void untilSix(int i) {
	volatile long *n = &sync_->n;
	for (long turns = 0; *n < 6; turns++) for (int k = 0; k < 8; k++) __builtin_ia32_pause();
}
static void stopShared(void) {
	if (pipe(fds)) abort();
	pid_t s = child(stopper, 0);
	makeSync();
	pid_t p = child(untilSix, 0);
	if (write(fds[1], &p, sizeof p) != sizeof p) abort();
	for (int k = 0; k < 6; k++) { nap(2); sync_->n++; }
	reap(p, "child");
	reap(s, "stopper");
}

// One whose memory another writes while it is stopped.
static void untilWritten(int i) { while (!box[60]) __builtin_ia32_pause(); box[61]++; }
static void stopWrite(void) {
	long one = 1;
	struct iovec a = {&one, sizeof one}, b = {(void *)(box + 60), sizeof one};
	pid_t p = child(untilWritten, 0);
	int st;
	nap(10);
	kill(p, SIGSTOP);
	if (waitpid(p, &st, WUNTRACED) != p || !WIFSTOPPED(st)) abort();
	say("written %zd\n", process_vm_writev(p, &a, 1, &b, 1, 0));
	kill(p, SIGCONT);
	reap(p, "child");
}

// Sessions, process groups and their signals.
static void leads(int i) {
	if (setsid() != getpid()) abort();
	pid_t p = child(waits, 0);
	signal(SIGUSR1, SIG_IGN);
	nap(5);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	reap(p, "grandchild");
	say("leader %d\n", getsid(0) == getpid());
}
static void sessions(void) {
	reap(child(leads, 2), "leader");
	pid_t p = child(waits, 0), q = child(waits, 0);
	setpgid(p, p);
	setpgid(q, p);
	nap(5);
	kill(-p, SIGUSR2); // not SIGHUP, which nohup has ignored
	reap(p, "one");
	reap(q, "two");
}

// The first call of each child is the one that made it, from the same instruction.
static void again(void) {
	int depth = 0;
	long p = 0;
	while (depth < 4 && (p = syscall(SYS_fork)) == 0) depth++;
	if (p > 0) reap(p, "again");
	if (depth > 0) _exit(depth);
}
// So with children that share the memory; the second outlives the first, which is its parent.
static char lwpStacks[2][1 << 14];
static volatile int lwpGone, lwpReached;
static int secondLWP(void *arg) {
	while (!lwpGone) usleep(1000);
	lwpReached = 1;
	return 0;
}
static int firstLWP(void *arg) { return clone(secondLWP, lwpStacks[1] + sizeof lwpStacks[1], CLONE_FILES | CLONE_VM, 0) < 0; }
static void lwps(void) {
	int st;
	pid_t p = clone(firstLWP, lwpStacks[0] + sizeof lwpStacks[0], CLONE_FILES | CLONE_VM, 0);
	if (waitpid(p, &st, __WALL) != p) abort();
	lwpGone = 1;
	while (!lwpReached) usleep(1000);
	say("first: code %d\n", WEXITSTATUS(st));
}

// The program itself, many times.
static void execLoop(int i) {
	char n[8];
	snprintf(n, sizeof n, "%d", i);
	execl("/proc/self/exe", "trees", "loop", n, (char *)0);
	abort();
}
static void execLoops(void) { reap(child(execLoop, 6), "loop"); execLoop(3); }

// A child that its parent traces.
static void traced(int i) { ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); say("traced %ld\n", work(1000)); }
static void tracer(void) {
	pid_t p = child(traced, 8);
	int st, calls = 0;
	if (waitpid(p, &st, 0) != p || !WIFSTOPPED(st)) { say("no stop: %#x\n", st); exit(1); }
	ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESYSGOOD);
	while (ptrace(PTRACE_SYSCALL, p, 0, 0) == 0 && waitpid(p, &st, 0) == p && WIFSTOPPED(st)) calls += WSTOPSIG(st) == (SIGTRAP | 0x80);
	say("calls seen: %d, code %d\n", calls > 0, WEXITSTATUS(st));
}
// A parent that attaches to its child.
static void attach(void) {
	pid_t p = child(computes, 8);
	int st;
	nap(10);
	if (ptrace(PTRACE_ATTACH, p, 0, 0)) { say("attach: %s\n", strerror(errno)); kill(p, SIGKILL); reap(p, "child"); return; }
	waitpid(p, &st, 0);
	say("stopped by %d\n", WSTOPSIG(st));
	errno = 0;
	ptrace(PTRACE_PEEKDATA, p, &flag, 0);
	say("peek: %s\n", strerror(errno));
	ptrace(PTRACE_DETACH, p, 0, 0);
	kill(p, SIGKILL);
	reap(p, "child");
}

// Crashes. Children wait in calls, and say what those return; then they go on.
static int ready[2];
static void isReady(void) { if (write(ready[1], "r", 1) != 1) abort(); }
static void awaitReady(int n) { char b; while (n-- > 0) if (read(ready[0], &b, 1) != 1) abort(); nap(20); }
static void inRead(int i) { char b; isReady(); ssize_t n = read(fds[0], &b, 1); say("read %zd %s\n", n, n < 0 ? strerror(errno) : ""); }
static void inEpoll(int i) {
	struct epoll_event e = {.events = EPOLLIN, .data.fd = back[0]}, out;
	int ep = epoll_create1(0);
	epoll_ctl(ep, EPOLL_CTL_ADD, back[0], &e);
	isReady();
	int n = epoll_wait(ep, &out, 1, 20000);
	say("epoll_wait %d %s\n", n, n < 0 ? strerror(errno) : "");
}
static void inSleep(int i) { isReady(); nap(150); say("slept\n"); }
static void inFutex(int i) {
	isReady();
	long r = syscall(SYS_futex, &sync_->turn, 0, 0, 0, 0, 0);
	say("futex %ld %s\n", r, r < 0 ? strerror(errno) : "");
}
static volatile sig_atomic_t told;
static void tell(int sig) { told = 1; }
static void inCode(int i) { signal(SIGUSR1, tell); isReady(); while (!told) { work(20000); getppid(); } say("computed\n"); }
static pid_t waiting[5];
static int waitingProcesses;
// One of them needs memory that all share.
static void startWaiting(int shares) {
	static void (*const f[])(int) = {inRead, inEpoll, inSleep, inCode, inFutex};
	if (pipe(fds) || pipe(back) || pipe(ready)) abort();
	if (shares) makeSync();
	waitingProcesses = shares ? 5 : 4;
	for (int i = 0; i < waitingProcesses; i++) waiting[i] = child(f[i], 0);
	awaitReady(waitingProcesses);
}
static void endWaiting(void) {
	if (write(fds[1], "x", 1) != 1 || write(back[1], "x", 1) != 1) abort();
	kill(waiting[3], SIGUSR1);
	if (waitingProcesses == 5) {
		sync_->turn = 1;
		syscall(SYS_futex, &sync_->turn, 1, 10, 0, 0, 0);
	}
	for (int i = 0; i < waitingProcesses; i++) reap(waiting[i], "other");
}
static void crashes(int i) { work(1000); *(volatile int *)0x10 = 1; }
static void crashesDeeper(int i) { reap(child(crashes, 0), "grandchild"); }
static void crashChild(void) { startWaiting(1); reap(child(crashes, 0), "child"); endWaiting(); }
static void crashGrandchild(void) { startWaiting(0); reap(child(crashesDeeper, 0), "child"); endWaiting(); }
static void crashVfork(void) {
	startWaiting(0);
	pid_t p = vfork();
	if (p == 0) { box[3] = 5; *(volatile int *)0x10 = 1; _exit(0); }
	reap(p, "vfork");
	endWaiting();
}
static void crashTwo(void) {
	startWaiting(1);
	pid_t p = child(crashes, 0), q = child(crashes, 0);
	reap(p, "one");
	reap(q, "two");
	endWaiting();
}
static void crashFirst(void) {
	if (pipe(ready)) abort();
	for (int i = 0; i < 2; i++) child(inSleep, 0);
	awaitReady(2);
	crashes(0);
}
// One beside a process that is inside its vfork call.
static void inVfork(int i) {
	pid_t p = vfork();
	if (p == 0) { isReady(); nap(200); execl("/bin/echo", "echo", "executed", (char *)0); _exit(1); }
	reap(p, "vfork");
}
static void crashBesideVfork(void) {
	if (pipe(ready)) abort();
	pid_t p = child(inVfork, 0);
	awaitReady(1);
	reap(child(crashes, 0), "child");
	reap(p, "other");
}
static void crashKilled(void) {
	pid_t p = child(waits, 0);
	nap(5);
	kill(p, SIGTERM);
	reap(p, "child");
}
// Two programs, and children of each.
static void programs(void) {
	reap(child(oneChild, 1), "child");
	say("system %d\n", WEXITSTATUS(system("/bin/echo one; /bin/cat /dev/null; exit 5")));
}
// Runs until it is told to stop.
static void forever(void) {
	for (int i = 0; i < 3; i++) child(i ? waits : computes, 0);
	say("runs\n");
	for (;;) pause();
}

static struct { const char *name; void (*run)(void); } cases[] = {
	{"fork", forkOne}, {"chain", chain}, {"many", many}, {"vfork", vforkExec}, {"vforkfails", vforkFails}, {"spawn", spawns}, {"shells", shells},
	{"clonevm", cloneVM}, {"clonevmexec", cloneVMExec}, {"forklocked", forkLocked}, {"forkthread", forkThread}, {"forkexecthread", forkExecThread},
	{"pipes", pipes}, {"mutexes", mutexes}, {"conds", conds}, {"sems", sems}, {"spins", spins}, {"remaps", remaps}, {"remapsnamed", remapsNamed}, {"later", later}, {"semopen", semOpen}, {"sysv", sysv},
	{"daemon", daemon_}, {"killed", killed}, {"handler", handler}, {"stops", stops}, {"stopshared", stopShared}, {"stopwrite", stopWrite}, {"sessions", sessions}, {"again", again}, {"lwps", lwps}, {"execloops", execLoops},
	{"robust", robust}, {"spinturns", spinTurns}, {"killedvm", killedVM}, {"pwrites", pwrites}, {"remote", remote}, {"namespaces", namespaces},
	{"tracer", tracer}, {"attach", attach},
	{"crashchild", crashChild}, {"crashgrandchild", crashGrandchild}, {"crashvfork", crashVfork}, {"crashtwo", crashTwo}, {"crashfirst", crashFirst}, {"crashbesidevfork", crashBesideVfork},
	{"crashkilled", crashKilled}, {"programs", programs}, {"forever", forever},
};

int main(int argc, char **argv) {
	if (argc > 2 && !strcmp(argv[1], "loop")) {
		int n = atoi(argv[2]);
		say("loop %d\n", n);
		if (n > 0) execLoop(n - 1);
		return 7;
	}
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
