package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// repack copies a recording with a changed manifest and one more member.
func repack(t *testing.T, b []byte, edit func(doc map[string]any), extra string) []byte {
	t.Helper()
	zr := must(zip.NewReader(bytes.NewReader(b), int64(len(b))))
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	put := func(name string, data []byte) {
		f := must(zw.CreateRaw(&zip.FileHeader{
			Name: name, CRC32: crc32.ChecksumIEEE(data), CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
		}))
		must(f.Write(data))
	}
	for _, f := range zr.File {
		data := must(io.ReadAll(must(f.Open())))
		if f.Name == nameManifest {
			doc := make(map[string]any)
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			edit(doc)
			data = must(json.Marshal(doc))
		}
		put(f.Name, data)
	}
	if extra != "" {
		put(extra, []byte("what may this be?"))
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestVersionsAndUnknownParts(t *testing.T) {
	hash := cutHash([]byte("what may this be?"))
	row := func(optional bool) func(map[string]any) {
		return func(doc map[string]any) {
			doc["members"] = append(doc["members"].([]any), map[string]any{
				"name": "new", "kind": "thing", "size": 17, "sha256_128": hex.EncodeToString(hash[:]), "optional": optional,
			})
		}
	}
	tests := []struct {
		name  string
		edit  func(map[string]any)
		extra string
		want  string // part of the error, "" for none
	}{
		{"unchanged", func(map[string]any) {}, "", ""},
		{"newer version", func(doc map[string]any) { doc["recording"].(map[string]any)["version"] = FormatVersion + 1 }, "", "format version 4, this vplay reads versions up to 3"},
		{"another version in the manifest alone", func(doc map[string]any) { doc["recording"].(map[string]any)["version"] = 1 }, "", "version 2, want"},
		{"version 0", func(doc map[string]any) { doc["recording"].(map[string]any)["version"] = 0 }, "", "format version 0"},
		{"newer version with new keys", func(doc map[string]any) {
			doc["recording"].(map[string]any)["version"] = 7
			doc["news"] = 1
		}, "news", "format version 7"},
		{"another format", func(doc map[string]any) { doc["format"] = "zoo" }, "", "not a vplay recording"},
		{"unknown key", func(doc map[string]any) { doc["news"] = 1 }, "", "news"},
		{"optional part", row(true), "new", ""},
		{"part that is needed", row(false), "new", `a part of kind "thing"`},
		{"part that is not listed", func(map[string]any) {}, "new", "does not list this member"},
		{"part that is missing", func(doc map[string]any) {
			doc["interval_list"] = append(doc["interval_list"].([]any), map[string]any{"id": 99})
			doc["recording"].(map[string]any)["intervals"] = 5
		}, "", "interval 99 has no member"},
		{"interval count", func(doc map[string]any) { doc["recording"].(map[string]any)["intervals"] = 5 }, "", "5 intervals promised, 4 listed"},
	}
	whole := deltaRecording(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := repack(t, whole, tt.edit, tt.extra)
			r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "x.vplay")
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want == "":
				if errs := r.Check(0); len(errs) != 0 {
					t.Errorf("found %v", errs)
				}
			case err == nil || !strings.Contains(err.Error(), tt.want) || !isClear(err):
				t.Errorf("got %v, want %q", err, tt.want)
			}
			var version *VersionError
			if strings.HasPrefix(tt.name, "newer") && !errors.As(err, &version) {
				t.Errorf("not a VersionError: %v", err)
			}
		})
	}
}

// TestFirstLoadsVersion: an interval of first loads is in files of version 3 only, and whoever writes such a file again
// keeps the version.
func TestFirstLoadsVersion(t *testing.T) {
	dir := t.TempDir()
	iv := &Interval{ID: 1, PID: 5, Slim: true, FirstLoads: true}
	w := must(Create(filepath.Join(dir, "plain.vplay"), WriterOptions{}))
	if err := w.AddInterval(iv); err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("a file of version 2 takes it: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	path, again := filepath.Join(dir, "first.vplay"), filepath.Join(dir, "again.vplay")
	w = must(Create(path, WriterOptions{FirstLoads: true}))
	if err := w.AddInterval(&Interval{ID: 2, PID: 5, FirstLoads: true}); err == nil {
		t.Error("a fat interval has first loads")
	}
	if err := errors.Join(w.AddInterval(iv), w.Finish(Manifest{PID: 5})); err != nil {
		t.Fatal(err)
	}
	if err := Rewrite(open(t, path), again, RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := open(t, again)
	if got := must(r.Interval(1)); r.version() != 3 || !got.FirstLoads || !got.Slim || r.Sizes().FirstLoads != 1 {
		t.Errorf("version %d, %+v", r.version(), got)
	}
	c := newEncoder(fakeStore{})
	codeInterval(c, iv)
	if _, err := decodeWhole(c.b, plainVersion, fakeStore{}, nil, codeInterval); err == nil || !strings.Contains(err.Error(), "slim") {
		t.Errorf("version 2 reads it: %v", err)
	}
}
