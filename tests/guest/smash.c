// Stack smash with a protector: __stack_chk_fail aborts.
#include <string.h>

int fill(const char *text) {
	char name[8];
	strcpy(name, text); // CULPRIT
	return name[0];
} // END

int main(int argc, char **argv) {
	(void)argv;
	return fill(argc > 5 ? "short" : "a name that is far too long for it");
}
