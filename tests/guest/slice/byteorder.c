// An offset that a file has in the order of the network is used as it is.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static volatile char data[4096];
volatile long busy;

__attribute__((noinline)) static uint32_t offset_in(const uint32_t *header) {
	return header[4]; // cause
}

int main(int argc, char **argv) {
	(void)argc;
	int fd = open(argv[0], O_RDONLY);
	uint32_t header[8];
	if (read(fd, header, sizeof header) != sizeof header)
		return 1;
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	uint32_t offset = offset_in(header) << 12;
	return data[offset + 0x40000000u];
}
