"""A "record" that does nothing: the replay is what gdb's own recording would
be, which would record the replay, and undo it by writing registers and memory.
(gdb 13 ends with a fault when "define" replaces a command that has
subcommands.)"""

import gdb


class Record(gdb.Command):
    """The program is recorded already."""

    def __init__(self):
        super().__init__("record", gdb.COMMAND_OBSCURE)

    def invoke(self, argument, from_tty):
        pass


Record()
