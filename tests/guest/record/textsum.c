// Reads the code of the program and of its libraries, as programs do that check themselves.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

static int add(struct dl_phdr_info *info, size_t size, void *sum) {
	if (strstr(info->dlpi_name, "vdso")) return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
		const unsigned char *b = (const unsigned char *)info->dlpi_addr + p->p_vaddr;
		for (size_t k = 0; k < p->p_filesz; k += 8) *(unsigned long *)sum = *(unsigned long *)sum * 31 + *(const unsigned long *)(b + k);
	}
	return 0;
}

int main(void) {
	unsigned long sum = 0;
	for (int i = 0; i < 3; i++) {
		dl_iterate_phdr(add, &sum);
		printf("%lx\n", sum);
		fflush(stdout);
	}
	return 0;
}
