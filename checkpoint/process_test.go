package checkpoint

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// family writes a recording of the processes 10, 30 and 20, which begin in this order and
// take turns; 20 executes another program. Each has a final image, Signo is its PID.
// about is the process that the manifest is about.
func family(t testing.TB, about int32) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "family.vplay")
	w := must(Create(path, WriterOptions{}))
	for id, of := range []processImage{{10, 0}, {30, 0}, {20, 0}, {10, 0}, {20, 1}, {30, 0}, {20, 1}} {
		var page [PageSize]byte
		page[0] = byte(of.pid)
		ref := must(w.AddPage(page[:]))
		iv := &Interval{ID: uint32(id), PID: of.pid, Image: of.image, Pages: []PageEntry{{PageSize, ref}}, End: End{Kind: EndStop}}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
		if err := w.SetFinalOf(of.pid, &Final{Pages: []PageEntry{{PageSize, ref}}, Signo: of.pid}); err != nil {
			t.Fatal(err)
		}
	}
	m := Manifest{PID: about, Program: "about", Signo: 11, Parent: 1}
	for _, p := range []Process{{PID: 10, Program: "ten"}, {PID: 20, Program: "twenty", Parent: 10}} {
		if p.PID != about {
			m.Processes = append(m.Processes, p)
		}
	}
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	return must(os.ReadFile(path))
}

// reread opens a recording in memory.
func reread(b []byte) (*Recording, error) {
	return OpenReader(bytes.NewReader(b), int64(len(b)), "x.vplay")
}

func TestProcesses(t *testing.T) {
	images := map[int32][][]uint32{10: {{0, 3}}, 20: {{2}, {4, 6}}, 30: {{1, 5}}}
	for about, want := range map[int32][]Process{
		10: {{PID: 10, Parent: 1, Program: "about", Signo: 11}, {PID: 30}, {PID: 20, Parent: 10, Image: 1, Program: "twenty"}},
		20: {{PID: 20, Parent: 1, Image: 1, Program: "about", Signo: 11}, {PID: 10, Program: "ten"}, {PID: 30}},
		// A process without an interval: the last interval's stands for it.
		77: {{PID: 20, Parent: 10, Image: 1, Program: "twenty"}, {PID: 10, Program: "ten"}, {PID: 30}},
	} {
		r := must(reread(family(t, about)))
		if got := r.Processes(); !reflect.DeepEqual(got, want) {
			t.Errorf("about %d: got %+v, want %+v", about, got, want)
		}
		for pid, want := range images {
			if got := ids(r.ImagesOf(pid)); !reflect.DeepEqual(got, want) {
				t.Errorf("about %d: process %d has %v, want %v", about, pid, got, want)
			}
			if f, err := r.FinalOf(pid); err != nil || f.Signo != pid {
				t.Errorf("about %d: final image of %d: %+v, %v", about, pid, f, err)
			}
			if p, ok := r.Process(pid); !ok || p.PID != pid {
				t.Errorf("about %d: process %d: %+v", about, pid, p)
			}
		}
		main := want[0].PID
		if got := ids(r.Images()); !reflect.DeepEqual(got, images[main]) {
			t.Errorf("about %d: images %v", about, got)
		}
		if f, err := r.Final(); err != nil || f.Signo != main {
			t.Errorf("about %d: final image %+v, %v", about, f, err)
		}
		if _, err := r.FinalOf(5); !errors.Is(err, ErrNoFinal) || r.ImagesOf(5) != nil || r.LastImageOf(5) != nil {
			t.Errorf("about %d: a process that is not there: %v", about, err)
		}
		if _, ok := r.Process(5); ok {
			t.Errorf("about %d: process 5 is there", about)
		}
		if errs := r.Check(0); len(errs) != 0 {
			t.Errorf("about %d: %v", about, errs)
		}
	}
}

// ids are the numbers of intervals.
func ids(images [][]IntervalInfo) (out [][]uint32) {
	for _, image := range images {
		var list []uint32
		for _, in := range image {
			list = append(list, in.ID)
		}
		out = append(out, list)
	}
	return out
}

// TestOlderReadersSkipFinals looks at the file as a reader that knows one process does:
// the members that it does not know are optional, the others are those that it expects.
func TestOlderReadersSkipFinals(t *testing.T) {
	r := must(reread(family(t, 10)))
	var optional []string
	for _, info := range r.manifest.Members {
		if info.Optional {
			optional = append(optional, info.Name+" "+info.Kind)
		}
	}
	if want := []string{"processes/20/final process-final", "processes/30/final process-final"}; !slices.Equal(optional, want) {
		t.Errorf("optional: %q, want %q", optional, want)
	}
	if r.listed[nameFinal].Kind != kindFinal {
		t.Error("no final image where it always was")
	}
}

func TestProcessesRewritten(t *testing.T) {
	dir := t.TempDir()
	b := family(t, 10)
	old := must(reread(b))
	var seen []int32
	o := RewriteOptions{
		Interval: func(_ *Writer, iv *Interval) (*Interval, error) {
			if iv.PID == 30 {
				return nil, nil
			}
			return iv, nil
		},
		Final: func(_ *Writer, pid int32, f *Final) (*Final, error) {
			seen = append(seen, pid)
			f.Signo++
			return f, nil
		},
	}
	if err := Rewrite(old, filepath.Join(dir, "new"), o); err != nil {
		t.Fatal(err)
	}
	r := open(t, filepath.Join(dir, "new"))
	if !slices.Equal(seen, []int32{10, 20}) {
		t.Errorf("final images of %v", seen)
	}
	for _, pid := range []int32{10, 20} {
		if f, err := r.FinalOf(pid); err != nil || f.Signo != pid+1 {
			t.Errorf("final image of %d: %+v, %v", pid, f, err)
		}
		if !reflect.DeepEqual(ids(r.ImagesOf(pid)), ids(old.ImagesOf(pid))) {
			t.Errorf("process %d has %v", pid, ids(r.ImagesOf(pid)))
		}
	}
	if errs := r.Check(0); len(errs) != 0 || len(r.Processes()) != 2 {
		t.Errorf("%d processes, errors %v", len(r.Processes()), errs)
	}
}

// TestMainProcessRewritten leaves the process out that the recording is about: another one
// takes its place, with its own final image.
func TestMainProcessRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	without := func(_ *Writer, iv *Interval) (*Interval, error) {
		if iv.PID == 10 {
			return nil, nil
		}
		return iv, nil
	}
	if err := Rewrite(must(reread(family(t, 10))), path, RewriteOptions{Interval: without}); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if p := r.Processes(); len(p) != 2 || p[0].PID != 20 || p[0].Program != "twenty" || p[1].PID != 30 {
		t.Errorf("processes %+v", p)
	}
	for _, pid := range []int32{20, 30} {
		if f, err := r.FinalOf(pid); err != nil || f.Signo != pid {
			t.Errorf("final image of %d: %+v, %v", pid, f, err)
		}
	}
	if f, err := r.Final(); err != nil || f.Signo != 20 {
		t.Errorf("final image %+v, %v", f, err)
	}
	if errs := r.Check(0); len(errs) != 0 {
		t.Errorf("found %v", errs)
	}
}

// TestDeltaAcrossProcesses has a delta whose only predecessor is another process's.
func TestDeltaAcrossProcesses(t *testing.T) {
	b := family(t, 10)
	edited := repack(t, b, func(doc map[string]any) {
		doc["interval_list"].([]any)[1].(map[string]any)["delta"] = true // the first of process 30
	}, "")
	if _, err := reread(edited); err == nil || !strings.Contains(err.Error(), "no interval of process 30") {
		t.Errorf("got %v", err)
	}
}

func TestForgedProcesses(t *testing.T) {
	b := family(t, 10)
	hash := cutHash([]byte("what may this be?"))
	member := func(name string, optional bool) func(map[string]any) {
		return func(doc map[string]any) {
			doc["members"] = append(doc["members"].([]any), map[string]any{
				"name": name, "kind": kindProcessFinal, "size": 17, "sha256_128": hex.EncodeToString(hash[:]), "optional": optional,
			})
		}
	}
	rows := func(pids ...int) func(map[string]any) {
		return func(doc map[string]any) {
			var list []any
			for _, pid := range pids {
				list = append(list, map[string]any{"pid": pid, "parent": -7, "program": "x"})
			}
			doc["recording"].(map[string]any)["processes"] = list
		}
	}
	for _, c := range []struct {
		name, extra, want string
		edit              func(map[string]any)
	}{
		{"a final image of a process without an interval", "processes/77/final", "no process that has an interval", member("processes/77/final", true)},
		{"one of the manifest's process", "processes/10/final", "no process that has an interval", member("processes/10/final", true)},
		{"a PID with a zero before it", "processes/020/final", "no process that has an interval", member("processes/020/final", true)},
		{"a PID that is none", "processes/-1/final", "no process that has an interval", member("processes/-1/final", false)},
		{"no PID", "processes//final", "no process that has an interval", member("processes//final", true)},
		{"a PID above all", "processes/4294967306/final", "no process that has an interval", member("processes/4294967306/final", true)},
		{"a row twice", "", "process 20 is listed twice", rows(20, 20)},
		{"a row of the manifest's process", "", "process 10 is listed twice", rows(20, 10)},
		{"a row of process 0", "", "positive", rows(0)},
		{"a row of process -1", "", "positive", rows(-1)},
		{"a row above all", "", "cannot unmarshal", rows(1 << 33)},
		{"rows of processes without an interval", "", "", rows(5, 20, 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := reread(repack(t, b, c.edit, c.extra))
			if c.want == "" {
				if err != nil || len(r.Processes()) != 3 {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !isClear(err) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestMissingFinal leaves a process's final image out, list and member.
func TestMissingFinal(t *testing.T) {
	var kept []any
	b := repack(t, family(t, 10), func(doc map[string]any) {
		for _, m := range doc["members"].([]any) {
			if m.(map[string]any)["name"] != nameFinalOf(20) {
				kept = append(kept, m)
			}
		}
		doc["members"] = kept
	}, "")
	if _, err := reread(b); err == nil || !strings.Contains(err.Error(), "does not list this member") {
		t.Errorf("the row alone is missing: %v", err)
	}
	b = without(t, b, nameFinalOf(20))
	r := must(reread(b))
	if _, err := r.FinalOf(20); !errors.Is(err, ErrNoFinal) {
		t.Errorf("got %v", err)
	}
	if f, err := r.FinalOf(30); err != nil || f.Signo != 30 {
		t.Errorf("the other one: %v", err)
	}
	if errs := r.Check(0); len(errs) != 0 {
		t.Errorf("found %v", errs)
	}
}

// without copies an archive but one member.
func without(t *testing.T, b []byte, name string) []byte {
	t.Helper()
	zr := must(zip.NewReader(bytes.NewReader(b), int64(len(b))))
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, f := range zr.File {
		if f.Name == name {
			continue
		}
		if err := zw.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDamagedFinal damages one process's final image and wants the rest.
func TestDamagedFinal(t *testing.T) {
	b := family(t, 10)
	from, to := place(t, b, nameFinalOf(30))
	b[(from+to)/2] ^= 4
	r := must(reread(b))
	_, err := r.FinalOf(30)
	demand(t, err, false, nameFinalOf(30))
	for _, pid := range []int32{10, 20} {
		_, err := r.FinalOf(pid)
		demand(t, err, true, nameFinalOf(30))
	}
	if errs := r.Check(0); len(errs) != 1 {
		t.Errorf("Check found %v", errs)
	}
}

func TestWriterRefusesProcesses(t *testing.T) {
	f := &Final{}
	for _, c := range []struct {
		name, want string
		set        func(w *Writer) error
		m          Manifest
	}{
		{"final image without interval", "process 2 has a final image and no interval", func(w *Writer) error { return w.SetFinalOf(2, f) }, Manifest{PID: 1}},
		{"two of the manifest's process", "two final images", func(w *Writer) error { return errors.Join(w.SetFinal(f), w.SetFinalOf(1, f)) }, Manifest{PID: 1}},
		{"a row twice", "listed twice", func(*Writer) error { return nil }, Manifest{PID: 1, Processes: []Process{{PID: 2}, {PID: 2}}}},
		{"a row of the manifest's process", "listed twice", func(*Writer) error { return nil }, Manifest{PID: 1, Processes: []Process{{PID: 1}}}},
		{"a page that was not added", "final image of process 1: page 0x0", func(w *Writer) error {
			return w.SetFinalOf(1, &Final{Pages: []PageEntry{{0, PageRef{Kind: PageFull, Hash: PageHash{1}}}}})
		}, Manifest{PID: 1}},
	} {
		dir := t.TempDir()
		w := must(Create(filepath.Join(dir, "x.vplay"), WriterOptions{}))
		err := w.AddInterval(&Interval{ID: 1, PID: 1})
		if err == nil {
			err = c.set(w)
		}
		if err == nil {
			err = w.Finish(c.m)
		} else {
			err = errors.Join(err, w.Abort())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if left := must(os.ReadDir(dir)); len(left) != 0 {
			t.Errorf("%s: left behind: %v", c.name, left)
		}
	}
}

// TestManyProcesses opens a file in which each of many intervals is a process with a
// final image of its own, under the budget of a file of this size.
func TestManyProcesses(t *testing.T) {
	const n = 3000
	path := filepath.Join(t.TempDir(), "many.vplay")
	w := must(Create(path, WriterOptions{}))
	for i := range int32(n) {
		if err := errors.Join(w.AddInterval(&Interval{ID: uint32(i), PID: 1 + i}), w.SetFinalOf(1+i, &Final{Signo: i})); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(Manifest{PID: 1}); err != nil {
		t.Fatal(err)
	}
	r, err := OpenWithin(path, NewBudget(context.Background(), 256<<20).Scaled())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := fmt.Sprint(len(r.Processes()), r.Processes()[n-1].PID); got != "3000 3000" {
		t.Errorf("got %s", got)
	}
	for i := range int32(n) {
		if f, err := r.FinalOf(1 + i); err != nil || f.Signo != i {
			t.Fatalf("final image of %d: %+v, %v", 1+i, f, err)
		}
	}
}
