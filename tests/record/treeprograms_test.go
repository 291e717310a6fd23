//go:build linux && amd64

package record

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// Programs that are many processes, which `just programs` installs and records whole.

const treeMakefile = `prog: a.o b.o c.o
	gcc -o $@ $^
%.o: %.c
	gcc -O1 -c -o $@ $<
clean:
	rm -f prog *.o
`

// bashJobs says what became of each job by its number, and not in the order in which bash
// hears of their ends: that is a race natively, and so is what it prints of them to standard error.
const bashJobs = `
exec 2>/dev/null
set -m
for i in 1 2 3; do sleep 100 & done
jobs | wc -l
for i in 1 2 3; do kill %$i; wait %$i; echo $i: $?; done
for i in 1 2 3; do (sleep 0.0$i; exit $i) & pids="$pids $!"; done
for p in $pids; do wait $p; echo $?; done
(exit 3) & wait $!; echo $?
f() { echo in $1; }
f a | cat; x=$(f b); echo $x
coproc cat
echo hi >&${COPROC[1]}; read -u ${COPROC[0]} l; echo $l
pid=$COPROC_PID; exec {COPROC[1]}>&-; wait $pid; echo $?; echo end
`

const gitWork = `
rm -rf repo; git init -q repo; cd repo
for i in 1 2 3; do
	seq $((i * 1000)) >f$i; git add f$i
	git -c user.name=a -c user.email=a@b commit -qm "c$i"
done
git gc -q; git fsck; git log --format=%s
`

const pythonSubprocess = `
import subprocess
print(subprocess.run(["echo", "x"], capture_output=True))
p = subprocess.Popen("cat; exit 3", shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(p.communicate(b"hello"), p.returncode)
print(subprocess.check_output("seq 5 | sort -r", shell=True))
`

const pythonPool = `
import multiprocessing
def square(x): return x * x
def count(n, lock, q):
    for i in range(50):
        with lock: n.value += 1
    q.put(i)
if __name__ == "__main__":
    with multiprocessing.Pool(3) as p: print(sum(p.map(square, range(200))))
    n, lock, q = multiprocessing.Value("i", 0, lock=False), multiprocessing.Lock(), multiprocessing.Queue()
    ps = [multiprocessing.Process(target=count, args=(n, lock, q)) for _ in range(3)]
    for p in ps: p.start()
    got = [q.get() for _ in ps]
    for p in ps: p.join()
    print(n.value, got)
`

const tmuxWork = `
rm -f socket typed
t="tmux -S $PWD/socket -f /dev/null"
$t new-session -d -s session 'exec sh'
$t send-keys "echo typed >typed" Enter
for i in $(seq 100); do [ -s typed ] && break; sleep 0.1; done
$t list-sessions -F '#{session_name}'
$t kill-server
cat typed
`

const fibonacci = `#include <stdio.h>
int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
int main(void) { printf("%d\n", f(15)); return 0; }
`

// goBuild changes a package each time, so that it is compiled. It has a home of its own: the Go
// command and its tools count what they do in files there, which they map shared, and Go commands
// outside the recording that store there at the same time would change the memory of these.
const goBuild = `
export GOFLAGS= GOWORK=off GOCACHE=$PWD/cache HOME=$PWD XDG_CONFIG_HOME=$PWD
mkdir -p small/inner; cd small
printf 'module small\n\ngo 1.24\n' >go.mod
printf 'package inner\n\nfunc Twice(x int) int { return 2 * x } // %s\n' $$ >inner/inner.go
printf 'package main\n\nimport (\n"fmt"\n"small/inner"\n)\n\nfunc main() { fmt.Println(inner.Twice(21)) }\n' >main.go
go build -o prog . && ./prog
`

// treePrograms are the programs, which work in folder dir.
func treePrograms(t *testing.T, dir string) []programCase {
	write := func(name, s string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", treeMakefile)
	for _, f := range []string{"a", "b", "c"} {
		write(f+".c", fmt.Sprintf("#include <stdio.h>\nint f_%s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x; return printf(\"%%d\\n\", s); }\n", f))
	}
	write("main.c", "#include \"a.c\"\nint main(void) { return f_a(1); }\n")
	write("b.c", "int main(void) { return 0; }\n")
	write("pool.py", pythonPool)
	write("fib.c", fibonacci)
	if out, err := exec.Command(need.Program(t, "gcc"), "-g", "-o", filepath.Join(dir, "fib"), filepath.Join(dir, "fib.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return []programCase{
		{name: "gcc", args: []string{"gcc", "-O1", "-o", "main", "main.c"}, processes: 4},
		{name: "make -j2", args: []string{"make", "-B", "-j2"}, processes: 10, loose: true},
		{name: "git", args: []string{"sh", "-c", gitWork}, needs: []string{"git"}, processes: 20},
		{name: "bash jobs", args: []string{"bash", "-c", bashJobs}, processes: 8},
		{name: "python3 subprocess", args: []string{"python3", "-c", pythonSubprocess}, processes: 5},
		{name: "python3 multiprocessing", args: []string{"python3", "pool.py"}, processes: 7},
		{name: "gdb", args: []string{"gdb", "-nx", "-batch", "-ex", "break f if n == 0", "-ex", "run >fib.out", "-ex", "bt", "-ex", "delete", "-ex", "print f(5)", "./fib"}, processes: 3},
		{name: "valgrind", args: []string{"valgrind", "-q", "--tool=none", "./fib"}, processes: 1},
		{name: "go build", args: []string{"sh", "-c", goBuild}, processes: 4},
		{name: "tmux", args: []string{"sh", "-c", tmuxWork}, needs: []string{"tmux"}, processes: 8},
	}
}

// TestTreePrograms records them whole, with all their processes, and verifies every interval.
func TestTreePrograms(t *testing.T) {
	if !*programs {
		return
	}
	dir := t.TempDir()
	for _, c := range treePrograms(t, dir) {
		t.Run(c.name, func(t *testing.T) { c.check(t, dir) })
	}
}

// nginxArgs are those of nginx with two workers, at a port.
func nginxArgs(t *testing.T, port string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte(strings.Repeat("some text\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(`worker_processes 2; daemon off; user root; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 128; }
http {
	access_log %[1]s/access; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
	fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	server { listen 127.0.0.1:%[2]s; root %[1]s; }
}
`, dir, port)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"nginx", "-c", filepath.Join(dir, "conf")}
}

// useHTTP has ab ask a server n times.
func useHTTP(n string) func(t *testing.T, addr string) {
	return func(t *testing.T, addr string) {
		out, err := exec.Command(need.Program(t, "ab"), "-n", n, "-c", "10", "http://"+addr+"/").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Failed requests:        0") || !strings.Contains(string(out), "Complete requests:      "+n) {
			t.Errorf("ab: %v\n%s", err, out)
		}
	}
}

// hostPort returns the port of an address.
func hostPort(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
