// Races that a fair schedule hides, each a crash when it happens:
//   races list|free
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int logfile;

static void note(const char *what) { write(logfile, what, strlen(what)); }

// A lost update. add() reads the head of the list, lets go of the lock while it writes to the
// log, and stores the new head: nodes that were taken meanwhile, and freed, are in the list
// again. Nobody sees it, for the reader begins a tenth of a second after the writer, which
// needs a thousandth.
enum { NODES = 8 };
struct node { struct node *next; long *volatile value; };
static struct node *head;

static void add(long value) {
	struct node *n = malloc(sizeof *n);
	n->value = malloc(sizeof *n->value);
	*n->value = value;
	pthread_mutex_lock(&lock);
	n->next = head;
	pthread_mutex_unlock(&lock);
	note("adding a node\n");
	pthread_mutex_lock(&lock);
	head = n; // STORE
	pthread_mutex_unlock(&lock);
}

static int take(long *value) {
	pthread_mutex_lock(&lock);
	struct node *n = head;
	if (n) {
		head = n->next;
		*value = *n->value;
	}
	pthread_mutex_unlock(&lock);
	if (!n) return 0;
	n->value = 0;
	free(n);
	return 1;
}

static void *writer(void *arg) {
	pthread_setname_np(pthread_self(), "writer");
	for (int i = 0; i < NODES; i++) add(i);
	return 0;
}

static void *reader(void *arg) {
	pthread_setname_np(pthread_self(), "reader");
	usleep(100000);
	long value;
	for (int got = 0; got < NODES;)
		if (take(&value)) { got++; note("took a node\n"); }
		else usleep(1000);
	return 0;
}

static void list(void) {
	pthread_t w, r;
	pthread_create(&w, 0, writer, 0);
	pthread_create(&r, 0, reader, 0);
	pthread_join(w, 0);
	pthread_join(r, 0);
	printf("all taken\n");
}

// A use after free. The request is given up when no answer has come for a tenth of a second,
// and freed, though the worker may have it.
struct request {
	const char *volatile text;
	size_t length;
	int answered;
};
static pthread_cond_t answer = PTHREAD_COND_INITIALIZER;

static void *worker(void *arg) {
	struct request *r = arg;
	note("working\n");
	size_t length = strlen(r->text);
	pthread_mutex_lock(&lock);
	r->length = length;
	r->answered = 1;
	pthread_cond_signal(&answer);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void timeout(void) {
	pthread_t w;
	struct timespec until;
	struct request *r = calloc(1, sizeof *r);
	r->text = "what?";
	pthread_create(&w, 0, worker, r);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	if (until.tv_nsec >= 1000000000) { until.tv_sec++; until.tv_nsec -= 1000000000; }
	pthread_mutex_lock(&lock);
	while (!r->answered && pthread_cond_timedwait(&answer, &lock, &until) != ETIMEDOUT) ;
	pthread_mutex_unlock(&lock);
	r->text = 0;
	free(r);
	pthread_join(w, 0);
	printf("done\n");
}

int main(int argc, char **argv) {
	logfile = open("/dev/null", O_WRONLY);
	if (argc > 1 && !strcmp(argv[1], "list")) list();
	else if (argc > 1 && !strcmp(argv[1], "free")) timeout();
	else return 2;
	return 0;
}
