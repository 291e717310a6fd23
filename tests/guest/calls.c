// Calls that end an interval of a recording: vfork, and one that does not exist.
#define _GNU_SOURCE
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int main(void) {
	if (vfork() == 0) // FORK
		_exit(0);
	wait(0);
	syscall(123456); // UNKNOWN
	getppid();
	return 0; // END
}
