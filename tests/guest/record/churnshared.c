// Processes that share memory and do by chance what such programs do (churnshared PROCESSES ROUNDS SEED): locks, stores to
// memory and to a file that all have mapped, reads and writes of both by calls, more mappings of them, pipes, signals, children.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 32, SIZE = PAGES * PAGE, MOST = 8, QUEUE = 64 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_rwlock_t rw;
	sem_t sem;
	_Atomic long count;
	long queue[QUEUE], head, tail;
	pid_t pid[MOST];
} *sh;
static unsigned char *mem, *filemem;
static int procs, rounds, memfd, file, pipes[2], pair[2], semid, shmid;
static unsigned long state;
static long sum;

static unsigned long draw(unsigned long n) {
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static void on_signal(int n) { sum += n; }

static struct timespec soon(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 300000;
	if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
	return t;
}

static void locks(long k) {
	struct timespec t;
	switch (draw(8)) {
	case 0:
		pthread_mutex_lock(&sh->lock);
		sh->queue[sh->head++ % QUEUE] = draw(1000);
		for (int i = 0; i < 200; i++) mem[k * PAGE + i] += i;
		pthread_cond_signal(&sh->cond);
		pthread_mutex_unlock(&sh->lock);
		break;
	case 1:
		pthread_mutex_lock(&sh->lock);
		t = soon();
		if (sh->tail == sh->head) pthread_cond_timedwait(&sh->cond, &sh->lock, &t);
		if (sh->tail < sh->head) sum += sh->queue[sh->tail++ % QUEUE];
		pthread_mutex_unlock(&sh->lock);
		break;
	case 2: sem_post(&sh->sem); break;
	case 3: sum += sem_trywait(&sh->sem); break;
	case 4:
		pthread_rwlock_rdlock(&sh->rw);
		for (int i = 0; i < PAGE; i += 64) sum += mem[k * PAGE + i];
		pthread_rwlock_unlock(&sh->rw);
		break;
	case 5:
		pthread_rwlock_wrlock(&sh->rw);
		memset(mem + k * PAGE, sum, 500);
		pthread_rwlock_unlock(&sh->rw);
		break;
	case 6: {
		struct sembuf op = {0, draw(2) ? 1 : -1, IPC_NOWAIT};
		sum += semop(semid, &op, 1);
		break;
	}
	case 7: flock(file, LOCK_EX); sum++; flock(file, LOCK_UN); break;
	}
}

static void memory(long k) {
	char b[600] = "";
	int fd = draw(2) ? memfd : file;
	switch (draw(11)) {
	case 0: sh->count++; mem[k * PAGE + draw(PAGE)]++; break;
	case 1: sum += filemem[k * PAGE + 8]; filemem[k * PAGE + 8] = sum; break;
	case 2: memset(b, sum, sizeof b); sum += pwrite(fd, b, draw(sizeof b), draw(SIZE - sizeof b)); break;
	case 3: sum += pread(fd, b, sizeof b, draw(SIZE)) + b[5]; break;
	case 4: {
		long want = sh->count;
		atomic_compare_exchange_strong(&sh->count, &want, want + 2);
		sum += want;
		break;
	}
	case 5: {
		unsigned char *p = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, draw(2) ? MAP_SHARED : MAP_PRIVATE, memfd, draw(PAGES - 4) * PAGE);
		p[5] += 1;
		sum += p[PAGE + 9];
		if (draw(2)) madvise(p, PAGE, MADV_DONTNEED);
		sum += p[5];
		munmap(p, 4 * PAGE);
		break;
	}
	case 6: fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, draw(PAGES - 2) * PAGE, PAGE * (1 + draw(2))); break;
	case 7: madvise(mem + k * PAGE, PAGE, MADV_DONTNEED); sum += mem[k * PAGE + 3]; break;
	case 8: {
		unsigned char *p = shmat(shmid, 0, 0);
		p[k * 100]++;
		sum += p[k * 50];
		shmdt(p);
		break;
	}
	case 9: {
		unsigned char *p = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, draw(PAGES - 4) * PAGE);
		p[5] += 1;
		sum += p[PAGE + 9];
		if (draw(2)) p = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mmap(0, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		sum += p[5] + p[2 * PAGE];
		munmap(p, 4 * PAGE);
		break;
	}
	case 10: {
		unsigned char *p = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, fd, draw(PAGES - 2) * PAGE);
		sum += p[PAGE + 8];
		munmap(p, 2 * PAGE);
		break;
	}
	}
}

static void child(long k) {
	int st;
	pid_t p = fork();
	if (p == 0) {
		mem[k * PAGE]++;
		filemem[k * PAGE + 1]++;
		_exit(mem[7] & 31);
	}
	while (waitpid(p, &st, 0) < 0 && errno == EINTR) {}
	sum += st;
}

static void step(int no) {
	char b[100] = "";
	struct timespec t = {0, 0};
	switch (draw(22)) {
	case 0 ... 7: locks(draw(PAGES)); break;
	case 8 ... 15: memory(draw(PAGES)); break;
	case 16: sum += write(pipes[1], b, draw(sizeof b)); break;
	case 17: sum += read(pipes[0], b, sizeof b); break;
	case 18: kill(sh->pid[draw(procs)], SIGUSR1); break;
	case 19: sum += send(pair[no & 1], b, draw(90), MSG_DONTWAIT) + recv(pair[no & 1], b, 90, MSG_DONTWAIT); break;
	case 20: if (draw(8) == 0) child(draw(PAGES)); break;
	case 21: t.tv_nsec = draw(200000); nanosleep(&t, 0); break;
	}
}

static void make_shared(void) {
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_rwlockattr_t ra;
	sh = mmap(0, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&ma), pthread_mutexattr_setpshared(&ma, 1), pthread_mutex_init(&sh->lock, &ma);
	pthread_condattr_init(&ca), pthread_condattr_setpshared(&ca, 1), pthread_cond_init(&sh->cond, &ca);
	pthread_rwlockattr_init(&ra), pthread_rwlockattr_setpshared(&ra, 1), pthread_rwlock_init(&sh->rw, &ra);
	sem_init(&sh->sem, 1, 0);
	memfd = memfd_create("churnshared", 0);
	file = open("churnshared.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (ftruncate(memfd, SIZE) || ftruncate(file, SIZE)) abort();
	mem = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	filemem = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	shmid = shmget(IPC_PRIVATE, 4 * PAGE, 0600);
	semid = semget(IPC_PRIVATE, 1, 0600);
	if (pipe2(pipes, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
}

int main(int argc, char **argv) {
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int st;
	pid_t p;
	procs = atoi(argv[1]), rounds = atoi(argv[2]), state = 31 * atol(argv[3]);
	make_shared();
	sigaction(SIGUSR1, &a, 0);
	for (int i = 0; i < procs; i++) sh->pid[i] = getpid();
	for (int i = 1; i < procs; i++) {
		if ((p = fork()) == 0) {
			state += i, sh->pid[i] = getpid();
			for (int k = 0; k < rounds; k++) step(i);
			sh->pid[i] = sh->pid[0];
			_exit(sum & 7);
		}
	}
	for (int k = 0; k < rounds; k++) step(0);
	while ((p = wait(&st)) > 0 || errno == EINTR) {}
	semctl(semid, 0, IPC_RMID), shmctl(shmid, IPC_RMID, 0);
	puts("end");
	return 0;
}
