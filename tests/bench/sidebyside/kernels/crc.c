// CRC-32 by table: a byte load, a table load and a shift in a chain.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t table[256];
static uint8_t data[1 << 16];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		table[i] = c;
	}
	for (unsigned i = 0; i < sizeof data; i++) data[i] = i * 7 ^ i >> 8;
	uint32_t c = ~0u;
	for (long r = 0; r < n; r++)
		for (unsigned i = 0; i < sizeof data; i++) c = table[(c ^ data[i]) & 255] ^ c >> 8;
	printf("%08x\n", ~c);
}
