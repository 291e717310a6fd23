// The program works in a folder whose path is longer than a path can be.
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
	static char name[201], base[] = "/tmp/deepcwdXXXXXX", self[PATH_MAX];
	if (argc > 1) {
		printf("%s, cwd %s\n", argv[1], getcwd(name, 3) ? name : "too long");
		return 0;
	}
	self[readlink("/proc/self/exe", self, sizeof self - 1)] = 0;
	memset(name, 'd', 200);
	if (!mkdtemp(base) || chdir(base))
		return 1;
	for (int i = 0; i < 25; i++)
		if (mkdir(name, 0700) || chdir(name))
			return 2;
	if (vfork() == 0) {
		execl("/bin/true", "true", NULL);
		_exit(3);
	}
	char *clean[] = {"rm", "-rf", base, NULL};
	if (vfork() == 0) {
		execv("/bin/rm", clean); // the folder itself goes on existing
		_exit(3);
	}
	execl(self, self, "again", NULL);
	return 4;
}
