// A shared library with thread-local variables, for tls.c: linked, and opened.
_Thread_local int in_library = 100;
_Thread_local long in_library_too[3] = {1, 2, 3};

int library_add(int n) {
	in_library_too[1] += n;
	return in_library += n; // LIBRARY
}
