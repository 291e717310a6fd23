/* How a program's call comes into the agent and leaves it. A stub jumps here in the place of a
 * SYSCALL instruction, with the registers as that would find them but for RCX, which has the
 * stub's description of its site; R11 becomes the thread's block: SYSCALL changes both. The stub of RDTSC and
 * RDTSCP, which come here in the same way, has kept them in the block. Nothing
 * of the program's stack is touched, not even below RSP, and no vector register. The labels
 * tell the supervisor, which may find a thread anywhere here, how far it is; they stand in the
 * table at the start, as offsets. */

#include "block.h"

	.section .head, "ax"
	.globl agent_head
agent_head:
	.long agent_entry - agent_head
	.long agent_entered - agent_head
	.long agent_tail - agent_head
	.long agent_made - agent_head
	.long agent_noted - agent_head
	.long agent_asked - agent_head
	.long agent_end - agent_head
	.long agent_began - agent_head
	.long agent_numbered - agent_head
	.long agent_kept - agent_head
	.long agent_gate - agent_head
	.long agent_sysed - agent_head
	.long agent_handler - agent_head
	.long agent_restorer - agent_head
	.balign 16

	.text
	.globl agent_entry
agent_entry:
	mov	%gs:B_SELF, %r11
	mov	%rsp, R_RSP(%r11)
agent_began:
	lea	(STACK_TOP-BLOCK)(%r11), %rsp
	mov	%rax, R_RAX(%r11)
agent_numbered:
	mov	%rdx, R_RDX(%r11)
	mov	%rbx, R_RBX(%r11)
	mov	%rbp, R_RBP(%r11)
	mov	%rsi, R_RSI(%r11)
	mov	%rdi, R_RDI(%r11)
	mov	%r8, R_R8(%r11)
	mov	%r9, R_R9(%r11)
	mov	%r10, R_R10(%r11)
	mov	%r12, R_R12(%r11)
	mov	%r13, R_R13(%r11)
	mov	%r14, R_R14(%r11)
	mov	%r15, R_R15(%r11)
	pushfq
	pop	%rax
	mov	%rax, R_R11(%r11)
	mov	%rax, R_RFLAGS(%r11)
agent_kept:
	cld
	test	$FLAG_AC, %eax			/* the program may have it set, and the code here does not align all it accesses */
	je	agent_aligned
	push	%rax
	andl	$~FLAG_AC, (%rsp)
	popfq
agent_aligned:
	mov	D_RIP(%rcx), %rax
	mov	%rax, R_RCX(%r11)
	mov	%rax, R_RIP(%r11)
	mov	D_RETURN(%rcx), %rax
	mov	%rax, B_RETURN(%r11)
	mov	D_SIZE(%rcx), %rax
	mov	%rax, B_SIZE(%r11)
	mov	B_HEAD(%r11), %rax
	mov	%rax, B_HEAD0(%r11)
	movl	$PHASE_ENTERED, B_PHASE(%r11)
agent_entered:
	mov	%r11, %rdi
	call	agent_call
	test	%eax, %eax
	jne	agent_ask
	lea	agent_block(%rip), %r11
agent_tail:
	push	R_RFLAGS(%r11)
	mov	B_RESULT(%r11), %rax
	mov	R_RDX(%r11), %rdx
	mov	R_RSI(%r11), %rsi
	mov	R_RDI(%r11), %rdi
	mov	R_R8(%r11), %r8
	mov	R_R9(%r11), %r9
	mov	R_R10(%r11), %r10
	mov	R_RCX(%r11), %rcx
	movl	$PHASE_NONE, B_PHASE(%r11)
	popfq
	mov	R_RSP(%r11), %rsp
	mov	R_R11(%r11), %r11
	jmp	*(agent_block+B_RETURN)(%rip)

/* agent_gate makes the call: the one SYSCALL instruction that system call user dispatch lets
 * through. */
	.globl agent_gate
agent_gate:
	push	%rbx
	mov	%rdi, %rbx
	mov	R_RAX(%rbx), %rax
	mov	R_RDI(%rbx), %rdi
	mov	R_RSI(%rbx), %rsi
	mov	B_THIRD(%rbx), %rdx
	mov	B_FOURTH(%rbx), %r10
	mov	R_R8(%rbx), %r8
	mov	R_R9(%rbx), %r9
	syscall
agent_made:
	mov	%rax, B_RESULT(%rbx)
	movl	$PHASE_MADE, B_PHASE(%rbx)
agent_noted:
	pop	%rbx
	ret

/* What the handler returns to. */
agent_restorer:
	mov	$15, %eax
	syscall

/* agent_sys makes a call of the agent's own: number, then four arguments. It is let through, too. agent_sys5 has five, and 0 as the
 * sixth. */
	.globl agent_sys, agent_sys5
agent_sys:
agent_sys5:
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	xor	%r9d, %r9d
	syscall
agent_sysed:
	ret

/* agent_handler is what SIGSYS does when there is no supervisor to stop for. It is the process's, and goes
 * on in the thread's own agent, whose calls alone are let through. */
agent_handler:
	cld
	pushfq
	andl	$~FLAG_AC, (%rsp)
	popfq
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%gs:B_SELF, %rdx
	mov	%rdx, %rax
	lea	agent_block(%rip), %rcx
	sub	%rcx, %rax
	lea	agent_asked(%rip), %rcx
	add	%rax, %rcx
	lea	agent_alone(%rip), %r8
	add	%r8, %rax
	jmp	*%rax

/* agent_ask stops for the supervisor, which does the rest of the call and sets the program's
 * registers: a SYSCALL instruction that is not let through, with a number that there is none of. */
agent_ask:
	mov	$-1, %rax
	syscall
agent_asked:
	lea	agent_block(%rip), %rdi		/* nobody is there, and calls are let through */
	call	agent_unasked
	lea	agent_block(%rip), %r11
	jmp	agent_tail
