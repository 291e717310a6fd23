// A process that becomes another program by execve: itself once more, elsewhere in
// memory, then /bin/sh, which becomes it a third time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int stage;

void step(int n) {
	stage = n; // STEP
}

int main(int argc, char **argv) {
	step(argc);
	char *self = argv[0];
	if (argc == 1)
		execl(self, self, "two", (char *)0); // FIRST
	if (argc == 2)
		execl("/bin/sh", "sh", "-c", "exec \"$0\" a b", self, (char *)0); // SECOND
	step(10);
	abort(); // END
}
