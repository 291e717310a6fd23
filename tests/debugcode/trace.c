/* Debug code for bc: the instruction, and the operand stack below it, printed by bc's own functions. LINE is that of the
   switch over instructions. */
#include <stdio.h>

static long count;

VPLAY_AT(execute.c, LINE) {
	int depth = 1;

	count++;
	printf("func=%d addr=%d inst=%c\n", pc.pc_func, pc.pc_addr, inst);
	if (ex_stack == NULL)
		printf("empty stack.\n");
	for (estack_rec *e = ex_stack; e != NULL; e = e->s_next) {
		printf("  %d = ", depth++);
		bc_out_num(e->s_num, 10, out_char, std_only);
	}
	out_char('\n');
}

VPLAY_AT_END {
	fprintf(stderr, "%ld instructions of bc\n", count);
}
