package main

// The manual of the verb debug-code. The verb is in debugcode.go.

// debugCodeHelp is the description of the verb debug-code.
const debugCodeHelp = `Debug-code runs C at places of the recorded program. FILE.c has regions, in which
the program's variables, functions and types are used by their names:

  #include <stdio.h>
  static int count;
  VPLAY_AT(execute.c, 123) {
      printf("%d: ", ++count);
      for (stack_t *p = stack; p; p = p->next)
          print_number(p->value);      // a function of the program
  }
  VPLAY_AT_END { printf("%d instructions\n", count); }

  VPLAY_AT(FILE, LINE)       before the line is executed, wherever it has code
  VPLAY_ON_CALL(FUNCTION)    behind the code that makes the function's frame
  VPLAY_ON_SYSCALL(NAME)     where a system call returns
  VPLAY_ON_ACCESS(VARIABLE)  behind each load and store of a global variable, or
                             of an expression of global ones: table[2].count
  VPLAY_AT_END               where the recording ends

At a line and at a call the function's parameters and variables can be used, also in
optimized code, as far as the compiler has kept them there: to use one that it has not
is an error, with the line. Everywhere: the program's global and static variables,
functions, types and enumerators, but no macros. Each region has a pointer vplay to

  pc, interval, instruction, thread     where it is
  rax, rcx, ... r15                     registers, for code without debug information
  number, args[6], result               of the system call
  address, size, store, data[64], old[64]   of the access

The rest of the file is C as ever: headers, functions, variables, which keep what is
put into them. It is compiled by musl-gcc, or by --cc clang, with a C library of its
own, musl. A name that the file declares means that; else a local variable of the program;
else what a header declares: puts(s) prints by musl, vplay_program_puts(s) by the
program's; else what the program has.

The code reads all memory of the program. To write to it is an error, with the line. The
program's functions run in a copy of the process that is thrown away at the end of the
region, so what they write is seen by the rest of it alone; what they print is printed.
A variable that the program has in a register is a copy, that is read only.

The code has memory, writes to descriptors 1 and 2, and can exit: no files, no network,
no clock. --steps bounds what one call of a region executes, --time all, --memory the
heap. The replay is exact with it: each interval's end is compared with the recording, as
verify does, and the last line says so. Regions are called for the program that the
process ran last, in the order of execution.

The file is trusted as any C that is compiled here; the recording is not.

Exit codes: 0 done, 1 an error of the debug code, 2 wrong use, or a mistake found when it
is compiled, 3 replay and recording differ, 4 the recording is damaged, 130 Ctrl-C.`
