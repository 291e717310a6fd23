// A program of which there are versions.
#include <stdio.h>

int main(void) {
	puts(VERSION);
	return 0;
}
