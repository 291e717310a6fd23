// wideregs crashes with known values in registers of AVX-512.
int main(void) {
	static long a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	__asm__ volatile(
		"vmovdqu64 (%0), %%zmm3\n\tvpaddq %%zmm3, %%zmm3, %%zmm20\n\t"
		"mov $0xa5, %%eax\n\tkmovq %%rax, %%k2\n\tvpcmpq $0, %%zmm3, %%zmm3, %%k1%{%%k2%}\n\tud2" // CRASH
		:: "r"(a) : "rax", "memory");
	return 0;
}
