// Bytes of a file go through memory, a vector copy, a table, flags and a thread to an output, a
// branch and the address of a crash; others do not. The lines that they must reach are marked.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define EFFECT() __asm__ volatile("nop" : : : "memory")

struct message {
    unsigned char index;
    unsigned char letter;
    unsigned char limit;
    unsigned char unused;
    char text[12];
};

struct message input, shared;
int unrelated = 5;
char out[16] = "abc....hijkl\n";
int table[256];

APART static void letter(const struct message *m)
{
    out[4] = (char)(m->letter ^ 0x20); // letter: made
    out[5] = 'x';
}

APART static void limit(const struct message *m)
{
    if (m->limit > 3) // limit: branch
        EFFECT();
}

APART static int other(void)
{
    unrelated = unrelated * 3 + 1; // unrelated
    return unrelated;
}

static void *work(void *arg)
{
    struct message *m = arg;
    letter(m);
    limit(m);
    return NULL;
}

APART static int last(const struct message *m)
{
    int *p = table + (long)m->index * 4096 * 4096; // index: made
    return *p; // index: crash
}

int main(int argc, char **argv)
{
    int fd = open(argc > 1 ? argv[1] : "/dev/null", O_RDONLY);
    if (read(fd, &input, sizeof input) != sizeof input)
        return 2;
    memcpy(&shared, &input, sizeof input); // copied
    if (other() == 7)
        EFFECT();
    pthread_t t;
    pthread_create(&t, NULL, work, &shared);
    pthread_join(t, NULL);
    if (write(1, out, 13) != 13) // output
        return 3;
    return last(&shared);
}
