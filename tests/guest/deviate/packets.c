// Packets with a length in a byte that has a sign.
#include "chores.h"

struct kind {
	const char *name;
	int isText;
};

static struct kind kinds[] = {{"nothing"}, {"bytes"}, {"text", 1}, {"mark"}};

struct record {
	int type;
	struct kind *kind;
	char data[128];
};

static int digit(int c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static int bytes_of(const char *p, unsigned char *out, int max) {
	int n = 0;
	while (n < max && isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1])) {
		out[n++] = digit(p[0]) * 16 + digit(p[1]);
		p += 2;
		while (*p == ' ')
			p++;
	}
	return n;
}

__attribute__((noinline)) static int read_record(struct record *r, const unsigned char *p, int left) {
	signed char length = p[1];
	r->type = p[0];
	r->kind = &kinds[p[0] < 4 ? p[0] : 0];
	if (length >= (int)sizeof r->data || length > left - 2) {
		printf("cut record of type %d\n", r->type);
		return left;
	}
	for (int i = 0; i < length; i++)
		r->data[i] = p[2 + i];
	r->data[length] = 0; // fault: read_record
	return left < p[1] + 2 ? left : p[1] + 2;
}

__attribute__((noinline)) static void show(const struct record *r, int n) {
	printf("%d %s:", r->type, r->kind->name);
	for (int i = 0; i < n && i < 8; i++)
		printf(r->kind->isText ? " %c" : " %02x", r->data[i]);
	printf("\n");
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *text;
	while ((text = line(&rest))) {
		unsigned char packet[512];
		int n = bytes_of(text, packet, sizeof packet);
		for (int at = 0; at + 2 <= n;) {
			struct record *r = calloc(1, sizeof *r);
			int used = read_record(r, packet + at, n - at);
			show(r, used - 2);
			at += used;
			free(r);
		}
	}
	return 0;
}
