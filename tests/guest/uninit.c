// Uses of bytes that were never written, one for each argument; the lines that use them
// are marked. With "copy", "clean" and "swapped" there is none: what is undefined is only moved, or decides nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")

struct record {
    int id;
    int kind;
    char name[24];
};

// A jump that stays one: what it goes around has an effect.
#define EFFECT() __asm__ volatile("nop" : : : "memory")

static volatile char sink;
char table[256];

APART static void fill(int *p, int value)
{
    *p = value;
}

APART static int branch(int argc)
{
    int local;
    int *p = &local;
    HIDE(p);
    if (argc > 100)
        fill(p, 1);
    if (*p) // use: branch
        EFFECT();
    return 0;
}

APART static int heap(void)
{
    struct record *r = malloc(sizeof *r);
    HIDE(r);
    r->id = 3;
    if (r->kind == 7) // use: heap
        EFFECT();
    free(r);
    return 0;
}

APART static void copy(struct record *to, const struct record *from)
{
    memcpy(to, from, sizeof *to);
}

APART static int copied(int isUsed)
{
    struct record *r = malloc(sizeof *r);
    struct record other;
    struct record *p = &other;
    HIDE(r);
    r->id = 3;
    copy(p, r);
    HIDE(p);
    if (!isUsed)
        return p->id;
    if (p->kind > 5) // use: copied
        EFFECT();
    return 0;
}

APART static int array(void)
{
    int list[10];
    int *p = list;
    HIDE(p);
    int sum = 0;
    for (int i = 0; i < 9; i++)
        p[i] = i;
    HIDE(p);
    for (int i = 0; i < 10; i++)
        sum += p[i];
    if (sum == 36) // use: array
        EFFECT();
    return 0;
}

APART static int output(void)
{
    char *p = malloc(16);
    HIDE(p);
    memcpy(p, "hello", 5);
    return write(2, p, 8) != 8; // use: output
}

APART static int at(void)
{
    int where;
    int *p = &where;
    HIDE(p);
    sink = table[*p & 0xff]; // use: index
    return 0;
}

APART static int grown(void)
{
    char *p = calloc(1, 8);
    p = realloc(p, 64);
    HIDE(p);
    if (p[40] == 'x') // use: grown
        EFFECT();
    return 0;
}

APART static int text(void)
{
    char *p = malloc(64);
    HIDE(p);
    memcpy(p, "abc", 3);
    p[8] = 0;
    return (int)strlen(p); // use: text
}

// A string where nobody has said: the function that looks at it uses the pointer.
APART static int pointer(void)
{
    int where;
    int *p = &where;
    const char *s = "abcdef";
    HIDE(p);
    HIDE(s);
    return (int)strlen(s + (*p & 3)); // use: pointer
}

// An x87 register that is loaded with what nobody has written, beside one that is defined.
APART static int number(void)
{
    long double *list = malloc(2 * sizeof *list);
    HIDE(list);
    list[0] = 1.5L;
    long double known = list[0] * 2, other = list[1] * 2;
    if (known > 2)
        EFFECT();
    if (other > 2) // use: number
        EFFECT();
    free(list);
    return 0;
}

// What compilers make of "known && unknown": the jump on what is undefined decides nothing when known is 0.
APART static int swapped(int known)
{
    int *unknown = malloc(32);
    HIDE(unknown);
    __asm__ volatile("cmpl $16, %0\n\tjne 1f\n\ttestl %1, %1\n\tje 1f\n\tnop\n1:" : : "m"(*unknown), "r"(known) : "cc"); // use: both
    free(unknown);
    return 0;
}

// What is behind the end of a string, of a structure and of a bit field is undefined and decides nothing.
APART static int clean(void)
{
    struct bits {
        unsigned a : 3, b : 5;
    } *f = malloc(sizeof *f);
    char *s = malloc(100);
    HIDE(f);
    HIDE(s);
    f->b = 9;
    if (f->b == 8)
        return 1;
    memcpy(s, "abcdef", 7);
    if (strlen(s) != 6 || strchr(s, 'z') || memchr(s, 'q', 6) || strcmp(s, "abcdeg") == 0)
        return 1;
    char *other = strdup(s);
    unsigned x = *(unsigned *)(s + 8);
    x = (x & 0) | 5;
    if (x != 5)
        return 1;
    x = *(unsigned *)(s + 8);
    __asm__("xor %0, %0" : "+r"(x));
    if (x)
        return 1;
    for (size_t i = 0; i < 6; i++)
        if (other[i] != s[i])
            return 1;
    free(other);
    return 0;
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int r = 0;
    if (!strcmp(which, "branch"))
        r = branch(argc);
    else if (!strcmp(which, "heap"))
        r = heap();
    else if (!strcmp(which, "copied") || !strcmp(which, "copy"))
        r = copied(!strcmp(which, "copied"));
    else if (!strcmp(which, "array"))
        r = array();
    else if (!strcmp(which, "output"))
        r = output();
    else if (!strcmp(which, "index"))
        r = at();
    else if (!strcmp(which, "grown"))
        r = grown();
    else if (!strcmp(which, "text"))
        r = text();
    else if (!strcmp(which, "pointer"))
        r = pointer();
    else if (!strcmp(which, "number"))
        r = number();
    else if (!strcmp(which, "swapped") || !strcmp(which, "both"))
        r = swapped(!strcmp(which, "both"));
    else
        r = clean();
    sink = (char)r;
    return 0;
}
