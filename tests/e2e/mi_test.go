package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
)

// TestVSCodeMI sends gdb what MIEngine, which is behind VS Code's cppdbg, sends for
// its requests launch and attach, with the program that export-elf writes; and then
// presses the buttons, backwards too.
func TestVSCodeMI(t *testing.T) {
	t.Parallel()
	g := compile(t, "tour", "-O0")
	rec := g.record(t, "--keep", "always")
	elf := filepath.Join(g.dir, "tour.elf")
	if out, err := exec.Command(vplayd, "export-elf", "--symbols", g.dir+"/symbols", "-o", elf, rec).CombinedOutput(); err != nil {
		t.Fatalf("export-elf: %v\n%s", err, out)
	}
	info, err := exec.Command(vplayd, "info", rec).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid := regexp.MustCompile(`process (\d+)`).FindStringSubmatch(string(info))[1]
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	for _, request := range []string{"launch", "attach"} {
		t.Run(request, func(t *testing.T) {
			m := realgdb.StartMI(t)
			say := func(line, pattern string) {
				t.Helper()
				m.Say(g.numbered(t, line), g.numbered(t, pattern))
			}
			console := func(command string) string { return fmt.Sprintf("-interpreter-exec console %q", command) }
			say("1001"+console("set pagination off"), `1001\^done`)
			say("1002"+console("set debuginfod enabled on"), `1002\^done`)
			say("1003-gdb-set auto-solib-add on", `1003\^done`)
			say("1004-gdb-set mi-async on", `1004\^done`)
			say("1005-file-exec-and-symbols "+elf, `1005\^done`)
			say("1006"+console("show architecture"), `i386:x86-64[\s\S]*1006\^done`)
			if request == "launch" {
				say("1007-break-insert -f main", `1007\^done,bkpt=`)
				say("1008-target-select remote "+addr, `\*stopped[\s\S]*1008\^connected|1008\^connected`)
			} else {
				say("1008-target-select extended-remote "+addr, `1008\^connected`)
				say("1009-target-attach "+pid, `1009\^done`)
			}
			say("1010-thread-info", `1010\^done,threads=\[\{id="1",target-id="Thread `+pid+`\.`+pid+`",name="tour"`)
			say("1011-list-target-features", `"reverse"`)
			say("1012-stack-info-depth 20", `1012\^done,depth="\d"`)
			say("1013-break-insert -f -c \"x == 6\" square", `1013\^done,bkpt=.*cond="x == 6"`)
			say("-exec-continue --reverse", `signal-name="SIGUSR1"`)
			say("-exec-continue --reverse", `reason="breakpoint-hit",.*func="square",args=\[\{name="x",value="6"\}\],file=".*tour.c".*line="LINE:SQUARE"`)
			say("-stack-list-frames 0 1000", `func="square".*func="add".*line="LINE:ADD".*func="fill".*line="LINE:STORE".*func="main".*line="LINE:CALL"`)
			say("-stack-list-arguments 0 0 1", `name="x"`)
			say("-stack-select-frame 1", `\^done`)
			say("-stack-list-variables 0", `\^done,variables=\[\{name="x"`)
			say("-var-create - * squares", `name="(var1)",numchild="10"`)
			say("-var-list-children --simple-values var1", `value="0".*value="1".*value="5"`)
			say("-var-create - * total", `value="55",type="int"`)
			say("-data-evaluate-expression \"(long)&total\"", `\^done,value="\d+"`)
			say("-break-watch *(int*)(&total)", `\^done,wpt=`)
			say("-exec-continue", `reason="watchpoint-trigger".*old="55",new="91".*func="add"`)
			say("-exec-finish", `reason="function-finished"`)
			say("-exec-next --reverse", `reason="(watchpoint-trigger|end-stepping-range|breakpoint-hit)"`)
			say(console("set exec-direction reverse"), `\^done`)
			say("-exec-next", `reason="(watchpoint-trigger|end-stepping-range|breakpoint-hit)"`)
			say("-exec-step-instruction", `reason="end-stepping-range"|reason="breakpoint-hit"`)
			say(console("set exec-direction forward"), `\^done`)
			say("-exec-next-instruction", `reason="end-stepping-range"|reason="breakpoint-hit"`)
			say("-data-list-register-names", `"rax".*"rip".*"fs_base"`)
			say("-data-list-register-values --skip-unavailable x", `number="16",value="0x`)
			say("-data-read-memory-bytes &squares 16", `contents="00000000010000000500`)
			say("-data-disassemble -s $pc -e \"$pc + 12\" -- 2", `func-name="`)
			say(console(loadCommands), `\^done`)
			say(console("vplay seek begin"), `\*stopped,reason="end-stepping-range"`) // front-ends hear of it
			say(console("vplay last-write total"), `not written before here`)
			say(console("vplay seek end"), `\*stopped`)
			if request == "launch" {
				say("9999"+console("kill"), `9999\^done`)
			} else {
				say("9999-target-detach", `9999\^done`)
			}
		})
	}
	if out := gdb(t, addr, "bt"); !strings.Contains(out, "_exit") {
		t.Errorf("the server is not there any more:\n%s", out)
	}
}
