// Asks CPUID for the leaves of a hypervisor, which programs do to find out whether they run in
// a virtual machine.
#include <cpuid.h>
#include <stdio.h>

int main(void) {
	unsigned a, b, c, d;
	__cpuid(1, a, b, c, d);
	printf("hypervisor %u\n", c >> 31);
	if (c >> 31)
		for (unsigned leaf = 0x40000000; leaf <= 0x40000001; leaf++) {
			__cpuid_count(leaf, 0, a, b, c, d);
			printf("%x: %x %x %x %x\n", leaf, a, b, c, d);
		}
	return 0;
}
