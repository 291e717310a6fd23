// System instructions that user mode may execute, and those that only some CPUs
// have: each prints its result, or the signal it ends in.
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile int signo;
static volatile long addr, trap;

static void handler(int s, siginfo_t *i, void *u) {
	ucontext_t *c = u;
	signo = s;
	addr = s == SIGSEGV ? (long)i->si_addr : 0;
	trap = c->uc_mcontext.gregs[REG_TRAPNO];
	siglongjmp(out, 1);
}

static unsigned long data[16] __attribute__((aligned(64)));

// CASE runs text with rdi = data, rcx = 0x33, rdx = 0x2b, rbx = 0x10 and rax =
// 0x1111...; prints rax, the flags and the data, or the signal.
#define CASE(text)                                                                                                                 \
	do {                                                                                                                       \
		unsigned long a = 0x1111111111111111, f = 0;                                                                       \
		memset(data, 0x55, sizeof data);                                                                                   \
		signo = 0;                                                                                                         \
		if (!sigsetjmp(out, 1)) {                                                                                          \
			asm volatile("lea -256(%%rsp), %%rsp\n" text "\npushfq\npop %1\nlea 256(%%rsp), %%rsp"                                  \
				     : "+a"(a), "=&r"(f)                                                                           \
				     : "D"(data), "c"(0x33L), "d"(0x2bL), "b"(0x10L)                                              \
				     : "memory", "cc", "r8", "r9");                                                                \
			printf("%-40s rax %016lx flags %03lx data %016lx %016lx\n", text, a, f & 0x8d5, data[0], data[1]);         \
		} else {                                                                                                           \
			printf("%-40s signal %d trap %ld address %lx\n", text, signo, trap, addr);                                 \
		}                                                                                                                  \
	} while (0)

static int has(const char *flag) {
	char line[8192], word[64];
	int found = 0;
	FILE *f = fopen("/proc/cpuinfo", "r");
	snprintf(word, sizeof word, " %s", flag);
	while (f && !found && fgets(line, sizeof line, f))
		if (!strncmp(line, "flags", 5)) {
			line[strcspn(line, "\n")] = ' ';
			strcat(word, " ");
			found = strstr(line, word) != NULL;
			break;
		}
	if (f)
		fclose(f);
	return found;
}

static void umip(void) {
	CASE("sgdt (%%rdi)");
	CASE("sidt (%%rdi)");
	CASE("sgdt 1");
	CASE("mov $1, %%edi; shl $63, %%rdi; sidt (%%rdi)");
	CASE("smsw (%%rdi)");
	CASE("smsw %%eax");
	CASE("smsw %%rax");
	CASE("smsw %%ax");
	CASE("sldt (%%rdi)");
	CASE("sldt %%eax");
	CASE(".byte 0x48, 0x0f, 0, 0xc0"); // sldt rax
	CASE("str %%eax");
	CASE(".byte 0x48, 0x0f, 0, 0xc8"); // str rax
	CASE("str %%ax");
	CASE("str (%%rdi)");
}

static void segments(void) {
	for (unsigned long s = 0; s < 0x90; s++) {
		unsigned l = 0x11111111, a = l;
		unsigned long fl, fa, fr, fw;
		asm volatile("lsl %k4, %0\npushfq\npop %2\nlar %k4, %1\npushfq\npop %3" : "+r"(l), "+r"(a), "=&r"(fl), "=&r"(fa) : "r"(s));
		asm volatile("verr %w2\npushfq\npop %0\nverw %w2\npushfq\npop %1" : "=&r"(fr), "=&r"(fw) : "r"(s));
		if ((s & ~3) == 0x78) { // the limit is the CPU's and node's number
			unsigned cpu, node;
			syscall(SYS_getcpu, &cpu, &node, NULL);
			l = l == (cpu | node << 12);
		}
		if ((fl | fa | fr | fw) & 0x40)
			printf("selector %02lx limit %x access %x %ld%ld%ld%ld\n", s, l, a, fl >> 6 & 1, fa >> 6 & 1, fr >> 6 & 1, fw >> 6 & 1);
	}
	CASE(".byte 0x48, 0x0f, 3, 0xc1"); // lsl rax, rcx
	CASE("lsl %%cx, %%ax");
	CASE(".byte 0x48, 0x0f, 2, 0xc1"); // lar rax, rcx
	CASE("lar %%cx, %%ax");
	CASE("movw $0x2b, (%%rdi); lar (%%rdi), %%eax");
	CASE("mov $0x2b0000002a, %%rax; mov %%rax, (%%rdi); lss (%%rdi), %%eax");
	CASE("mov $0x10, %%eax; mov %%rax, (%%rdi); lgs (%%rdi), %%eax");
	CASE("mov $0x2b0000002a, %%rax; mov %%rax, (%%rdi); lgs (%%rdi), %%eax; mov %%gs, %%eax");
}

static void far(void) {
	CASE("lea 1f(%%rip), %%rax; push %%rcx; push %%rax; lretq; 1: xor %%eax, %%eax");
	CASE("lea 1f(%%rip), %%rax; push %%rbx; push %%rax; lretq; 1:");
	CASE("lea 1f(%%rip), %%rax; push $0; push %%rax; lretq; 1:");
	CASE("lea 1f(%%rip), %%rax; push $0x30; push %%rax; lretq; 1:");
	CASE("lea 1f(%%rip), %%rax; push $5; push %%rcx; push %%rax; lretq $8; 1: xor %%eax, %%eax");
	CASE("mov %%rsp, %%r8; push %%rdx; push %%r8; pushfq; push %%rcx; lea 1f(%%rip), %%rax; push %%rax; iretq; 1: xor %%eax, %%eax");
	CASE("mov %%rsp, %%r8; push $3; push %%r8; pushfq; push %%rcx; lea 1f(%%rip), %%rax; push %%rax; iretq; 1:");
	CASE("mov %%rsp, %%r8; push %%rdx; push %%r8; pushfq; push %%rbx; lea 1f(%%rip), %%rax; push %%rax; iretq; 1:");
	CASE("lea 1f(%%rip), %%rax; mov %%eax, (%%rdi); mov %%ecx, 4(%%rdi); ljmp *(%%rdi); 1:");
	CASE("lea 1f(%%rip), %%rax; mov %%eax, (%%rdi); mov %%ecx, 4(%%rdi); lcall *(%%rdi); 1: pop %%rax");
	CASE("lea 1f(%%rip), %%rax; mov %%eax, (%%rdi); mov %%edx, 4(%%rdi); ljmp *(%%rdi); 1:");
}

static void rest(void) {
	CASE("mov %%rdi, %%rax; .byte 0x0f, 1, 0xfc; xor %%eax, %%eax"); // clzero
	CASE(".byte 0x0f, 1, 0xe8");                                      // serialize
	CASE(".byte 0x48, 0x0f, 0x38, 0xf9, 0x0f");                       // movdiri
	CASE("lea 64(%%rdi), %%rax; movq $7, 64(%%rdi); .byte 0x66, 0x0f, 0x38, 0xf8, 0x38; xor %%eax, %%eax"); // movdir64b rdi, [rax]
	CASE("inc %%rdi; .byte 0x66, 0x0f, 0x38, 0xf8, 0x3f");
	CASE(".byte 0x0f, 1, 0xd6"); // xtest
	CASE(".byte 0x0f, 1, 0xd5"); // xend
	CASE(".byte 0xc6, 0xf8, 3"); // xabort
	CASE(".byte 0x0f, 0x0f, 0xc1, 0x9e"); // pfadd
	CASE("in $3, %%al");
	CASE("outsb");
	CASE("hlt");
	CASE("cli");
	CASE("int3");
	CASE("int $3");
	CASE("int $4");
	CASE("int $5");
	CASE(".byte 0xf1");
	CASE("ud2");
	CASE(".byte 0x0f, 0x1e, 0xfa; .byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8"); // endbr64, rdsspq
	CASE(".byte 0xf3, 0x48, 0x0f, 0xae, 0xe8"); // incsspq
	CASE(".byte 0x0f, 1, 0xd4"); // vmfunc
	CASE(".byte 0x66, 0x0f, 0x38, 0x82, 7"); // invpcid
	if (has("rdpid")) {
		unsigned long v = 0;
		unsigned cpu, node;
		asm volatile(".byte 0xf3, 0x0f, 0xc7, 0xf8" : "+a"(v));
		syscall(SYS_getcpu, &cpu, &node, NULL);
		printf("rdpid %d\n", v == (cpu | node << 12));
	}
}

int main(void) {
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE};
	for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &a, NULL);
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	if (has("umip"))
		umip();
	segments();
	far();
	rest();
	return 0;
}
