// Executes itself with an empty environment, then prints GLIBC_TUNABLES and
// whether argc, argv and the auxiliary vector are what they should be.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv, char **envp) {
	if (argc == 1) {
		char *args[] = {argv[0], "one", "two", 0}, *none[] = {0};
		execve("/proc/self/exe", args, none);
		return 1;
	}
	char *v = getenv("GLIBC_TUNABLES");
	printf("%d %s %s page %lu, stack %lu\n", argc, argv[1], argv[2], getauxval(AT_PAGESZ), (unsigned long)__builtin_frame_address(0) % 16);
	printf("%s\n", v && strstr(v, "-AVX512F") ? "limited" : "free");
	abort();
}
