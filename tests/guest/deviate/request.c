// The states of a reader of requests. One without a length goes on to a body that it does not have.
#include "chores.h"

enum state { START, HEADERS, BODY, DONE };

struct request {
	enum state state;
	char method[8], path[32];
	int length, got;
	char *body;
};

static void start_line(struct request *r, const char *p) {
	if (sscanf(p, "%7s %31s", r->method, r->path) < 2)
		strcpy(r->path, "/");
}

static void header(struct request *r, const char *p) {
	if (!strncasecmp(p, "length:", 7)) {
		r->length = atoi(p + 7);
		r->body = calloc(1, r->length + 1);
	} else if (!strncasecmp(p, "host:", 5)) {
		printf("host%s\n", p + 5);
	} else {
		printf("ignored %s\n", p);
	}
}

static void body(struct request *r, const char *p) {
	for (; *p && r->got < 100; p++)
		r->body[r->got++] = *p;
}

static enum state next_state(const struct request *r, const char *p) {
	switch (r->state) {
	case START:
		return HEADERS;
	case HEADERS:
		if (*p)
			return HEADERS;
		if (r->length > 0)
			return BODY;
		return strcmp(r->method, "GET") ? BODY : DONE; // fault: next_state
	case BODY:
		return r->got >= r->length ? DONE : BODY;
	default:
		return DONE;
	}
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	struct request r = {START};
	while ((p = line(&rest))) {
		if (r.state == DONE) {
			printf("%s %s: %d bytes\n", r.method, r.path, r.got);
			free(r.body);
			memset(&r, 0, sizeof r);
			if (!*p)
				continue;
		}
		switch (r.state) {
		case START:
			start_line(&r, p);
			break;
		case HEADERS:
			if (*p)
				header(&r, p);
			break;
		case BODY:
			body(&r, p);
			break;
		default:
			break;
		}
		r.state = next_state(&r, p);
	}
	return 0;
}
