// A segment of shared memory that is attached, read, stored to and detached within one interval.
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void) {
	int id = shmget(IPC_PRIVATE, 3 * 4096, IPC_CREAT | IPC_EXCL | 0600);
	volatile int *p = shmat(id, 0, 0);
	if (p == (void *)-1) abort();
	p[1] = 5;
	p[0] = p[7] + p[1025];
	shmdt((void *)p);
	volatile int *q = shmat(id, 0, 0);
	if (q == (void *)-1) abort();
	printf("%d %d %d %d\n", q[0], q[1], q[7], q[2049]);
	shmdt((void *)q);
	shmctl(id, IPC_RMID, 0);
	return 0;
}
