// What all programs of this folder do besides: it goes other ways with each input, and
// none of that has to do with what is wrong in them.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checksum;
static int letters[26], digits, others, longest;

// tell prints the arguments, the longer ones cut.
static void tell(int argc, char **argv) {
	for (int i = 0; i < argc; i++) {
		size_t n = strlen(argv[i]);
		if (n > 40)
			printf("argument %d: %.37s...\n", i, argv[i]);
		else
			printf("argument %d: %s\n", i, argv[i]);
	}
}

// count looks at the text for the statistics that are printed at the end.
static void count(const char *text) {
	int width = 0;
	for (const char *p = text; *p; p++) {
		checksum = checksum * 31 + (unsigned char)*p;
		if (isalpha((unsigned char)*p))
			letters[tolower((unsigned char)*p) - 'a']++;
		else if (isdigit((unsigned char)*p))
			digits++;
		else
			others++;
		if (*p == '\n')
			width = 0;
		else if (++width > longest)
			longest = width;
	}
}

// sum sorts the letters by how often they are there.
static void sum(void) {
	int order[26], n = 0;
	for (int i = 0; i < 26; i++) {
		if (!letters[i])
			continue;
		int k = n++;
		while (k > 0 && letters[order[k - 1]] < letters[i]) {
			order[k] = order[k - 1];
			k--;
		}
		order[k] = i;
	}
	for (int i = 0; i < n && i < 5; i++)
		printf("%c: %d\n", 'a' + order[i], letters[order[i]]);
	if (digits > others)
		printf("mostly numbers\n");
	printf("sum %08x, longest line %d\n", checksum, longest);
}

// load reads the file that the first argument names.
static char *load(int argc, char **argv) {
	tell(argc, argv);
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	if (!f) {
		fprintf(stderr, "no input\n");
		exit(2);
	}
	char *text = calloc(1, 1 << 16);
	size_t n = fread(text, 1, (1 << 16) - 1, f);
	text[n] = 0;
	fclose(f);
	count(text);
	sum();
	return text;
}

// line cuts the next line off a text, without what is blank around it; NULL at the end.
static char *line(char **rest) {
	char *p = *rest;
	if (!p || !*p)
		return NULL;
	char *end = strchr(p, '\n');
	if (end) {
		*end = 0;
		*rest = end + 1;
	} else {
		*rest = NULL;
	}
	while (isspace((unsigned char)*p))
		p++;
	for (size_t n = strlen(p); n > 0 && isspace((unsigned char)p[n - 1]); n--)
		p[n - 1] = 0;
	return p;
}
