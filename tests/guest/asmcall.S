	.text
	.globl add_three
	.type add_three, @function
add_three:
	lea (%rdi,%rsi), %rax
	add %rdx, %rax
	ret
	.size add_three, . - add_three
	.section .note.GNU-stack, "", @progbits
