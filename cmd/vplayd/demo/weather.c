// A weather station: keeps the last readings of its sensors, computes a
// forecast, and prints a report.
#include <stdio.h>

#define WINDOW 16

struct sensor {
	const char *name;
	unsigned long at; // where the next reading goes
	long readings[WINDOW];
	struct sensor *next;
};

static struct sensor rain = {.name = "rain"};
static struct sensor wind = {.name = "wind", .next = &rain};
static struct sensor sun = {.name = "sun", .next = &wind};

static unsigned weather = 2012;

static long measure(void)
{
	weather = weather * 1103515245 + 12345;
	return 1000 + (weather >> 16) % 1000;
}

__attribute__((noinline)) static void add_reading(struct sensor *s, long value)
{
	s->readings[s->at++] = value;
	if (s->at > WINDOW)
		s->at = 0;
}

__attribute__((noinline)) static void collect(int hours)
{
	for (int hour = 0; hour < hours; hour++) {
		add_reading(&wind, measure());
		if (hour % 2 == 0)
			add_reading(&sun, measure());
		if (hour % 3 == 0)
			add_reading(&rain, measure());
	}
}

__attribute__((noinline)) static double forecast(int steps)
{
	double front = 0;
	for (int i = 0; i < steps; i++) {
		long r = wind.readings[i % WINDOW] - sun.readings[(i + 5) % WINDOW];
		front = front * 0.999 + r * 0.001;
	}
	return front;
}

__attribute__((noinline)) static void report(const struct sensor *first)
{
	for (const struct sensor *s = first; s; s = s->next)
		printf("%s: now %ld\n", s->name, s->readings[0]);
}

int main(void)
{
	collect(20);
	printf("tomorrow: %.1f\n", forecast(3000000));
	report(&sun);
	return 0;
}
