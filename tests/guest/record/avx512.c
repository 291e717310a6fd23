// avx512 computes with ZMM and mask registers in two threads, while signals come whose handler
// overwrites them all: the frames must bring them back. It has glibc's functions for AVX-512 look
// at strings, too, and loads with a mask at the end of memory.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd"), noinline))

static volatile sig_atomic_t alarms;

WIDE static void on_alarm(int sig) {
	(void)sig;
	alarms++;
	__asm__ volatile(
		"vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n\tvmovdqa64 %%zmm0, %%zmm7\n\tvmovdqa64 %%zmm0, %%zmm15\n\t"
		"vmovdqa64 %%zmm0, %%zmm16\n\tvmovdqa64 %%zmm0, %%zmm31\n\tkxnorq %%k0, %%k0, %%k1\n\tkmovq %%k1, %%k7"
		::: "xmm0", "xmm7", "xmm15", "memory");
}

// mix keeps its state in registers of all three kinds and writes each round's sum.
WIDE static uint64_t mix(uint64_t seed, int rounds) {
	__m512i a = _mm512_set1_epi64(seed), b = _mm512_set_epi64(1, 2, 3, 4, 5, 6, 7, 8);
	__m512d f = _mm512_set1_pd(1.0), g = _mm512_cvtepi64_pd(b);
	__mmask8 k = (__mmask8)seed | 1;
	uint64_t sum = 0;
	for (int i = 0; i < rounds; i++) {
		a = _mm512_mask_add_epi64(a, k, a, b);
		b = _mm512_rol_epi64(_mm512_ternarylogic_epi64(a, b, _mm512_permutexvar_epi64(a, b), 0x96), 7);
		k = _mm512_cmplt_epu64_mask(a, b) ^ (__mmask8)i;
		f = _mm512_mask_fmadd_round_pd(f, k, g, f, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
		f = _mm512_getmant_pd(f, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
		sum += _mm512_mask_reduce_add_epi64(k, _mm512_xor_si512(b, _mm512_castpd_si512(f)));
		if ((i & 4095) == 0)
			sum += getppid() > 0;
	}
	return sum;
}

// narrow does the same with YMM16 and up, as glibc does, and with a VEX instruction between
// that must clear an upper half.
WIDE static uint64_t narrow(uint64_t seed, int rounds) {
	uint64_t sum[8] = {0};
	for (int i = 0; i < rounds; i++)
		__asm__ volatile(
			"vpbroadcastq %1, %%ymm17\n\tvpaddq (%0), %%ymm17, %%ymm18\n\tvpcmpub $1, %%ymm17, %%ymm18, %%k3\n\t"
			"vmovdqu8 %%ymm18, %%ymm19%{%%k3%}%{z%}\n\tvmovdqu64 %%ymm19, (%0)\n\t"
			"vpbroadcastq %1, %%zmm2\n\tvpaddd %%xmm2, %%xmm2, %%xmm2\n\tvpaddq (%0), %%zmm2, %%zmm3\n\tvmovdqu64 %%zmm3, (%0)\n\tvzeroupper"
			:: "r"(sum), "r"(seed + i) : "xmm2", "xmm3", "memory");
	return sum[0] ^ sum[3] ^ sum[4] ^ sum[7];
}

static void *worker(void *arg) {
	uint64_t *r = arg;
	for (int i = 0; i < 4; i++)
		*r = *r * 31 + mix(*r + i, 20000) + narrow(*r, 5000);
	return 0;
}

static sigjmp_buf back;
static void on_fault(int sig) { siglongjmp(back, sig); }

WIDE static void edges(void) {
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + 4096, 4096);
	memset(p, 'x', 4096);
	p[4095] = 0;
	__m512i z = _mm512_maskz_loadu_epi8(0xffff, p + 4080); // what is masked is not there
	_mm512_mask_storeu_epi8(p + 4070, 0x3ff, z);
	printf("masked %d, length %zu\n", (int)_mm512_reduce_add_epi32(z), strlen(p + 100));
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(back, 1) == 0)
		printf("not reached %d\n", (int)_mm512_reduce_add_epi32(_mm512_loadu_si512(p + 4080)));
	else
		puts("fault");
}

static void strings(void) {
	static char a[70000], b[70000];
	unsigned sum = 0;
	for (int n = 1; n < 66000; n = n * 3 / 2 + 1) {
		memset(a, 'a' + n % 7, n);
		a[n] = 0;
		memcpy(b, a, n + 1);
		b[n / 2] ^= 1;
		sum = sum * 31 + strlen(a) + (memcmp(a, b, n) > 0) + (strcmp(a, b) < 0) + (strchr(b, b[n / 2]) - b) + ((char *)memchr(b, b[n / 2], n) - b);
		memmove(a + 3, a, n);
		sum += strnlen(a, n) + (strrchr(a, a[0]) - a);
	}
	printf("strings %u\n", sum);
}

int main(void) {
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &sa, 0);
	struct itimerval tick = {{0, 2000}, {0, 2000}};
	setitimer(ITIMER_REAL, &tick, 0);
	pthread_t t;
	uint64_t mine = 1, its = 2;
	pthread_create(&t, 0, worker, &its);
	worker(&mine);
	pthread_join(t, 0);
	// Fast CPUs are here before the first alarm.
	uint64_t sum = mix(3, 1000);
	while (alarms < 3)
		if (mix(3, 1000) != sum)
			return 2;
	setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
	printf("%016lx %016lx\n", mine, its);
	strings();
	edges();
	return 0;
}
