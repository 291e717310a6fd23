// A pointer to a function of a library that is unloaded before the call. With -DLIBRARY it is the library,
// whose path is the program's argument.
#ifdef LIBRARY
static int answer(void) {
	return 42;
}

void give(int (**to)(void)) {
	*to = answer; // GIVE
}
#else
#include <dlfcn.h>

static int (*kept)(void);

int main(int argc, char **argv) {
	void *lib = dlopen(argv[argc - 1], RTLD_NOW);
	if (!lib)
		return 1;
	((void (*)(int (**)(void)))dlsym(lib, "give"))(&kept);
	dlclose(lib);
	return kept(); // CALL
}
#endif
