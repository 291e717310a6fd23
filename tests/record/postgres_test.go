//go:build linux && amd64

package record

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// TestServersPostgres records PostgreSQL: the making of a database, and a server with two clients,
// of which each gets a process that shares 128 MiB of memory with the others.
func TestServersPostgres(t *testing.T) {
	if !*programs {
		return
	}
	bin := filepath.Dir(need.File(t, "/usr/lib/postgresql/15/bin/postgres"))
	dir := postgresFolder(t)
	// It does not run as root.
	as := []string{need.Program(t, "setpriv"), "--reuid", "postgres", "--regid", "postgres", "--clear-groups"}
	command := func(name string, args ...string) []string {
		return append(append(as[:len(as):len(as)], filepath.Join(bin, name)), args...)
	}
	t.Run("initdb", func(t *testing.T) {
		r := run{dir: dir, args: command("initdb", "-D", "db", "-N")}
		got, res := r.recorded(t)
		if got.code != 0 || !res.Recorded || res.Reason != "" {
			t.Fatalf("exit code %d, recorded %t, %s\n%s", got.code, res.Recorded, res.Reason, tail(got.out))
		}
		checkProcesses(t, res.Path, 8)
		t.Log(verify(t, res.Path))
	})
	t.Run("pgbench", func(t *testing.T) {
		port := freePort(t)
		r := run{dir: dir, args: command("postgres", "-D", "db", "-k", "", "-h", "127.0.0.1", "-p", port)}
		r.kick = func(pid int) {
			defer func() { _ = syscall.Kill(pid, syscall.SIGTERM) }()
			usePostgres(t, filepath.Join(bin, "pgbench"), port)
		}
		got, res := r.recorded(t)
		if !res.Recorded || res.Reason != "" {
			t.Fatalf("recorded %t, %s\n%s", res.Recorded, res.Reason, tail(got.out))
		}
		checkProcesses(t, res.Path, 10)
		t.Log(verify(t, res.Path))
	})
}

// postgresFolder makes a folder that belongs to user postgres, who can get there.
func postgresFolder(t *testing.T) string {
	t.Helper()
	need.Machine(t, "root", os.Getuid() == 0)
	u, err := user.Lookup("postgres")
	need.Installed(t, "user postgres", err == nil)
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	dir, err := os.MkdirTemp("", "vplay-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// usePostgres fills a table and has two clients change it for 20 s.
func usePostgres(t *testing.T, pgbench, port string) {
	if !listening(net.JoinHostPort("127.0.0.1", port)) {
		t.Error("nothing listens")
		return
	}
	ask := func(args ...string) (string, error) {
		out, err := exec.Command(pgbench, append([]string{"-h", "127.0.0.1", "-p", port, "-U", "postgres"}, append(args, "postgres")...)...).CombinedOutput()
		return string(out), err
	}
	fill := []string{"-i", "-q", "-s", "1"}
	out, err := ask(fill...)
	for end := time.Now().Add(60 * time.Second); err != nil && time.Now().Before(end); out, err = ask(fill...) {
		time.Sleep(time.Second) // it is starting up
	}
	if err != nil {
		t.Errorf("pgbench -i: %v\n%s", err, out)
		return
	}
	out, err = ask("-c", "2", "-T", "20")
	if err != nil || !strings.Contains(out, "number of failed transactions: 0 ") {
		t.Errorf("pgbench: %v\n%s", err, out)
	}
	t.Log(out[strings.LastIndex(out, "number of transactions actually"):])
}
