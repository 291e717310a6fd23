/* A page of code whose permission to execute comes and goes: what was executed before may not be
 * executed then, whether it is jumped to or run into from the page before. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static char *page;
static volatile int faults;

static void segv(int sig, siginfo_t *si, void *context)
{
	faults++;
	if (si->si_addr != page)
		printf("a fault at %p, not at %p\n", si->si_addr, (void *)page);
	mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

int main(void)
{
	/* nop; nop; nop; nop; mov $7,%eax; ret */
	static const char code[] = { 0x90, 0x90, 0x90, 0x90, 0xb8, 7, 0, 0, 0, 0xc3 };
	struct sigaction sa = { .sa_sigaction = segv, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &sa, 0);
	page = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page += 4096;
	for (int before = 0; before <= 6; before += 2) {
		char *start = page - before;
		int (*f)(void) = (int (*)(void))start;
		memcpy(start, code, sizeof code);
		for (int i = 0; i < 200; i++)
			if (f() != 7)
				return 1;
		mprotect(page, 4096, before & 2 ? PROT_NONE : PROT_READ);
		printf("%d bytes before: %d, %d faults\n", before, f(), faults);
		if (faults != before / 2 + 1)
			return 2;
	}
	return 0;
}
