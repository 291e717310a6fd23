package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vplay/checkpoint"
)

// TestDamagedPages: pages that cannot be read make a recording damaged, which is found in the midst
// of replay. They are not taken for pages that were not captured.
func TestDamagedPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather")
	runDemo(t, "--extract", dir)
	path := filepath.Join(dir, "weather.vplay")
	damagePages(t, path)
	for _, args := range [][]string{{"slice"}, {"affected"}, {"run", "heap"}, {"export", "--to", "csv", "-o", "-"}, {"report", "-o", filepath.Join(dir, "page.html")}} {
		args = append(args, path)
		if args[0] == "affected" {
			args = append(args, "input")
		}
		_, code, err := vplayd(t, args...)
		var damage *checkpoint.FormatError
		if code != exitDamaged || !errors.As(err, &damage) || damage.Member != "pages/0000.pack" {
			t.Errorf("%v: exit code %d: %v", args, code, err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if err != nil || !bytes.Contains(page, []byte("The recording is damaged: ")) {
		t.Errorf("the page does not warn of it: %v", err)
	}
}

// damagePages changes a byte of each block of pages.
func damagePages(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if f.Name != "pages/0000.pack" {
			continue
		}
		start, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		for at := start + 100; at < start+int64(f.CompressedSize64); at += 1000 {
			b[at] ^= 4
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
