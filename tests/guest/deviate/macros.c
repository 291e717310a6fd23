// Macros that are expanded into each other, without a look at which are under way.
#include "chores.h"

struct macro {
	char name[12];
	char body[48];
};

static struct macro macros[16];
static int known, expanded;

static struct macro *find_macro(const char *name, int n) {
	for (int i = 0; i < known; i++)
		if ((int)strlen(macros[i].name) == n && !memcmp(macros[i].name, name, n))
			return &macros[i];
	return NULL;
}

static int expand(const char *text, int level) { // fault: expand
	char word[256];
	int total = 0;
	for (const char *p = text; *p;) {
		if (*p != '$') {
			total++;
			p++;
			continue;
		}
		int n = 0;
		for (p++; isalnum((unsigned char)p[n]); n++)
			word[n] = p[n];
		word[n] = 0;
		struct macro *m = find_macro(word, n);
		if (m)
			total += expand(m->body, level + 1);
		else
			printf("no macro %s at level %d\n", word, level);
		p += n;
		expanded++;
	}
	return total;
}

static void define(char *p) {
	char *eq = strchr(p, '=');
	if (!eq || known == 16)
		return;
	*eq = 0;
	snprintf(macros[known].name, sizeof macros->name, "%s", p);
	snprintf(macros[known].body, sizeof macros->body, "%s", eq + 1);
	known++;
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	while ((p = line(&rest))) {
		if (*p == '!')
			define(p + 1);
		else if (*p)
			printf("%d characters\n", expand(p, 0));
	}
	printf("%d expanded\n", expanded);
	return 0;
}
