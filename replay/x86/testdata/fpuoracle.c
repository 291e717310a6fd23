// Runs x87 and state-save instructions on this CPU for the tests of package
// x86: cases in on stdin, results out on stdout, both as fixed records, until
// the end of input. Argument: the bytes of memory operand per case.
//
// The code runs at CODE, rdi and rbp point to the memory at DATA, rcx is 0.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define CODE 0x10000000ul
#define DATA 0x20000000ul
#define DATA_SIZE 16384

struct in {
	uint8_t code[24];           // instructions, then zeros
	uint32_t len, pad;          // bytes of code
	uint64_t rax, rdx, flags;   // registers before
	uint8_t img[832];           // XSAVE image, standard format: x87, SSE, AVX
};
struct out {
	uint64_t sig, rax, flags;   // signal number or 0; registers after
	uint8_t img[832];           // XSAVE image after; XSTATE_BV is XINUSE
	uint8_t env[32];            // FNSTENV after (28 bytes)
};

uint64_t g_rax, g_rdx, g_flags, g_save[8];
// An instruction that may restore AMX's tiles touches the last byte of their 8 KiB, even where none are in use.
uint8_t g_in[16384] __attribute__((aligned(64)));
uint8_t g_out[4096] __attribute__((aligned(64)));
uint8_t g_env[32];
extern void run_case(void);
__asm__(
	".text\n.globl run_case\nrun_case:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"mov $0xffffffff, %eax; mov %eax, %edx; xrstor64 g_in(%rip)\n"
	"mov $0x20000000, %edi; mov %rdi, %rbp\n"
	"mov g_rax(%rip), %rax; mov g_rdx(%rip), %rdx\n"
	"pushq g_flags(%rip); popfq\n"
	"mov $0x10000000, %ebx; mov $0, %ecx\n"
	"call *%rbx\n"
	"pushfq; popq g_flags(%rip)\n"
	"mov %rax, g_rax(%rip)\n"
	"mov $7, %eax; xor %edx, %edx; xsave64 g_out(%rip)\n"
	"fnstenv g_env(%rip)\n"
	"fninit; cld\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"vzeroupper; ret\n");

static sigjmp_buf back;
static void on_signal(int sig, siginfo_t *si, void *u) {
	(void)si;
	ucontext_t *uc = u;
	memcpy(g_out, uc->uc_mcontext.fpregs, 832);
	siglongjmp(back, sig);
}

static void read_all(void *p, size_t n) {
	if (fread(p, 1, n, stdin) != n) exit(0);
}

int main(int argc, char **argv) {
	size_t nmem = argc > 1 ? strtoul(argv[1], 0, 0) : 128;
	uint8_t *code = mmap((void *)CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	uint8_t *data = mmap((void *)DATA, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (code == MAP_FAILED || data == MAP_FAILED || nmem > DATA_SIZE) return 2;
	stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&ss, 0);
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	int sigs[] = {SIGFPE, SIGSEGV, SIGILL, SIGBUS, SIGTRAP};
	for (unsigned i = 0; i < sizeof sigs / sizeof *sigs; i++) sigaction(sigs[i], &sa, 0);
	struct in in;
	static struct out out;
	for (;;) {
		read_all(&in, sizeof in);
		read_all(data, nmem);
		memcpy(code, in.code, sizeof in.code);
		code[in.len] = 0xc3;
		memset(g_in, 0, sizeof g_in);
		memcpy(g_in, in.img, sizeof in.img);
		memset(g_out, 0, sizeof g_out);
		memset(g_env, 0, sizeof g_env);
		g_rax = in.rax, g_rdx = in.rdx, g_flags = in.flags;
		memset(&out, 0, sizeof out);
		int sig = sigsetjmp(back, 1);
		if (sig == 0) run_case();
		else __asm__ volatile("fninit; cld; vzeroupper");
		out.sig = sig, out.rax = g_rax, out.flags = g_flags;
		memcpy(out.img, g_out, sizeof out.img);
		memcpy(out.env, g_env, sizeof out.env);
		fwrite(&out, sizeof out, 1, stdout);
		fwrite(data, nmem, 1, stdout);
	}
}
