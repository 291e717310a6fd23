// A reader of pictures, which computes the size of one in 16 bits.
#include "chores.h"

struct palette {
	int used;
	const char *names[8];
};

struct image {
	int width, height;
	unsigned char *pixels;
	struct palette *palette;
};

static const char *colours[] = {"black", "red", "green", "blue", "white"};

static struct palette *new_palette(void) {
	struct palette *p = malloc(sizeof *p);
	p->used = 0;
	for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
		p->names[p->used++] = colours[i];
	return p;
}

static struct image *load_image(int width, int height, int step) {
	struct image *m = malloc(sizeof *m);
	unsigned short size = width * height;
	m->width = width;
	m->height = height;
	m->pixels = malloc(size);
	m->palette = new_palette();
	for (int i = 0; i < width * height; i++) // fault: load_image
		m->pixels[i] = i * step % 5;
	return m;
}

static void describe(const struct image *m) {
	int counts[5] = {0};
	for (int i = 0; i < m->width; i++)
		counts[m->pixels[i]]++;
	printf("%d by %d:", m->width, m->height);
	for (int i = 0; i < 5; i++)
		if (counts[i])
			printf(" %s %d", m->palette->names[i], counts[i]);
	printf("\n");
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	while ((p = line(&rest))) {
		int width, height, step = 1;
		char name[32];
		if (sscanf(p, "%31s %d %d %d", name, &width, &height, &step) < 3) {
			printf("not a picture: %s\n", p);
			continue;
		}
		if (width <= 0 || height <= 0 || width > 1000 || height > 1000) {
			printf("%s is too large\n", name);
			continue;
		}
		describe(load_image(width, height, step));
	}
	return 0;
}
