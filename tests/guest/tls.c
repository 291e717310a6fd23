// Thread-local variables of the program, of a library it is linked with, and of
// one that it opens, whose blocks are found in different ways.
#include <dlfcn.h>
#include <stdio.h>

_Thread_local int in_program = 7;
_Thread_local _Alignas(64) char aligned[64] = "aligned";
_Thread_local char cleared[32];

int library_add(int n);

int main(int argc, char **argv) {
	cleared[3] = 'c';
	int n = library_add(++in_program);
	if (argc > 1) {
		void *h = dlopen(argv[1], RTLD_NOW);
		if (!h)
			return 1;
		n += ((int (*)(int))dlsym(h, "opened_add"))(5);
	}
	return n - n; // END
}
