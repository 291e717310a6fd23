printf("%c %ld %d %g %d %d\n", mixed.tag, mixed.a, mixed.i, mixed.f, mixed.bytes[2], (int)sizeof mixed);
printf("%d %d %lld %d %d %d\n", mixed.one, mixed.five, (long long)mixed.wide, mixed.is, mixed.level == MIDDLE, BIG);
printf("%c %d %d %g %d %d\n", p->c, p->i, p->s, p->d, (int)sizeof(struct packed), (int)(p - packed));
printf("%c %d %Lg %d %d %d\n", aligned.c, aligned.x, aligned.ld, (int)(aligned.huge >> 96), (int)sizeof(struct aligned), (int)_Alignof(struct aligned));
printf("%s %s %d %d\n", n->name, n->next->name, n->next->m[1][2], n->next->t == TINY_B);
printf("%d %d %d\n", n->table[0](20, "abc"), n->table[1](1, "a"), first.others == &n->next);
printf("%d %d %d\n", (int)n->size, (int)sizeof(*n), n->when.tm_year);
printf("%d %d %d\n", n->tail->n, n->tail->data[2], (int)sizeof(struct flexible));
printf("%d %s %s %d\n", bytes[2], words[1], local, (int)sizeof local);
printf("%g %g %d\n", __real__ z, __imag__ z, (int)sizeof(words));
printf("%d %d\n", x, next);
for (struct node *next = (struct node *)n; next; next = next->next)
	printf("%s %d\n", next->name, (int)sizeof(next->table));
