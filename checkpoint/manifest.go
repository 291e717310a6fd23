package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// The manifest member is JSON, so that people and scripts can read it: what
// the recording says of itself, the list of its intervals, and the list of all
// other members with their lengths and hashes. A member that is not listed is
// an error; a listed one of unknown kind is skipped when it is marked optional
// and refused otherwise.

// FormatVersion is the newest version of the format that this package writes and reads. It reads all
// versions from 1 on.
const FormatVersion = firstLoadsVersion

const (
	plainVersion      = 2 // is written where nothing needs a newer one
	firstLoadsVersion = 3
)

const formatName = "vplay-recording"

// KeepCore is Manifest.Keep of a recording that was made from a core file.
const KeepCore = "core"

// Names of members.
const (
	nameMagic       = "VPLAY"
	nameManifest    = "manifest.json"
	nameObjects     = "objects"
	nameObjectPages = "object-pages"
	nameFinal       = "final"
)

func nameHead(id uint32) string { return fmt.Sprintf("intervals/%08d/head", id) }
func nameLog(id uint32) string  { return fmt.Sprintf("intervals/%08d/log", id) }
func namePack(n int) string     { return fmt.Sprintf("pages/%04d.pack", n) }
func nameIndex(n int) string    { return fmt.Sprintf("pages/%04d.index", n) }

// Kinds of members.
const (
	kindMagic        = "magic"
	kindObjects      = "objects"
	kindObjectPages  = "object-pages"
	kindFinal        = "final"
	kindProcessFinal = "process-final"
	kindHead         = "interval-head"
	kindLog          = "interval-log"
	kindPack         = "page-pack"
	kindIndex        = "page-index"
)

var knownKinds = map[string]bool{
	kindMagic: true, kindObjects: true, kindObjectPages: true, kindFinal: true,
	kindProcessFinal: true, kindHead: true, kindLog: true, kindPack: true, kindIndex: true,
}

// magicText is the content of the first member, for people and for file(1).
func magicText(version int) string {
	return fmt.Sprintf("vplay recording, format version %d\n", version)
}

// Manifest is what a recording says of itself; it is in the JSON member of
// the file. The fields that name a program speak of the process PID.
type Manifest struct {
	Version   int       `json:"version"` // of the format; the writer sets it
	Tool      string    `json:"tool"`
	ID        string    `json:"id"`      // random, 32 hex digits; the writer makes one when it is empty
	Program   string    `json:"program"` // path of the program at the last execve
	Args      []string  `json:"args,omitempty"`
	Env       []string  `json:"env,omitempty"`
	Cwd       string    `json:"cwd"`
	Hostname  string    `json:"hostname"`
	Kernel    string    `json:"kernel"`
	Start     time.Time `json:"start"`
	PID       int32     `json:"pid"`
	Parent    int32     `json:"parent,omitempty"` // 0 when it is not in the session; since version 2
	CPU       Identity  `json:"cpu"`
	Auxv      []byte    `json:"auxv,omitempty"`
	Crash     bool      `json:"crash"`
	Signo     int32     `json:"signo"`
	ExitCode  int32     `json:"exit_code"`
	Intervals int       `json:"intervals"` // the writer sets it
	Keep      string    `json:"keep"`      // "crash" or "always", KeepCore
	Notes     []string  `json:"notes,omitempty"`
	// Processes lists the session's other processes, those that have an interval in the
	// file, each once. Empty when there is one. Where there are several, the recording is
	// about PID: the first that crashed, else the first program.
	Processes []Process `json:"processes,omitempty"`
}

// IntervalInfo is what is known of an interval without reading it.
type IntervalInfo struct {
	ID    uint32 `json:"id"`
	PID   int32  `json:"pid"`
	Image uint32 `json:"image"`
	Slim  bool   `json:"slim"`
	// FirstLoads says that of its pages only the bytes are known that replay or debuggers need; since version 3.
	FirstLoads bool          `json:"first_loads,omitempty"`
	Delta      bool          `json:"delta"`
	Threads    int           `json:"threads"`
	Maps       int           `json:"maps"`
	Pages      int           `json:"pages"`      // rows of the page table as stored
	EndPages   int           `json:"end_pages"`  // pages written in the interval
	Events     int           `json:"events"`     // entries of the log
	HeadSize   int64         `json:"head_bytes"` // stored, in bytes
	LogSize    int64         `json:"log_bytes"`  // stored, in bytes
	LogRaw     int64         `json:"log_raw"`    // decompressed, in bytes
	End        EndKind       `json:"end"`
	Forced     bool          `json:"forced"`
	CPUStart   time.Duration `json:"cpu_start_ns"`
	CPUTime    time.Duration `json:"cpu_ns"`
	WallTime   time.Time     `json:"wall"`
}

// memberInfo is one row of the list of members.
type memberInfo struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Size     int64  `json:"size"`            // bytes
	Hash     string `json:"sha256_128"`      // the first 16 bytes of SHA-256, in hex
	Pages    int    `json:"pages,omitempty"` // page-index: how many pages it lists
	Optional bool   `json:"optional,omitempty"`
}

// manifestFile is the whole JSON document.
type manifestFile struct {
	Format       string         `json:"format"`
	Manifest     Manifest       `json:"recording"`
	IntervalList []IntervalInfo `json:"interval_list"`
	Members      []memberInfo   `json:"members"`
}

// manifestVersion is the part that is read first, whatever else there is.
type manifestVersion struct {
	Format   string `json:"format"`
	Manifest struct {
		Version int `json:"version"`
	} `json:"recording"`
}

// encodeManifest returns the manifest member.
func encodeManifest(m *manifestFile) ([]byte, error) {
	doc := *m
	doc.Manifest = mapStrings(m.Manifest, escape)
	doc.Manifest.Start = m.Manifest.Start.UTC()
	b, err := json.Marshal(&doc)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: manifest: %w", err)
	}
	if len(b) > maxManifest {
		return nil, fmt.Errorf("checkpoint: manifest has %d bytes, above the bound of %d", len(b), maxManifest)
	}
	return append(b, '\n'), nil
}

// manifestMemory bounds what the structures of a manifest take, in bytes: an element
// of a list is a few bytes of text, and the tables that are made of it have an entry
// for each.
func manifestMemory(b []byte) int64 {
	return 2*int64(len(b)) + 1000*int64(bytes.Count(b, []byte{'{'})) + 64*int64(bytes.Count(b, []byte{','}))
}

// decodeManifest reads the manifest member. The error is ErrNotRecording, a
// *VersionError, ctx's, or any other for damage.
func decodeManifest(ctx context.Context, b []byte) (*manifestFile, error) {
	var v manifestVersion
	if err := decodeJSON(json.NewDecoder(reading{ctx, bytes.NewReader(b)}), &v); err != nil {
		return nil, err
	}
	if v.Format != formatName {
		return nil, ErrNotRecording
	}
	if v.Manifest.Version < 1 || v.Manifest.Version > FormatVersion {
		return nil, &VersionError{Have: v.Manifest.Version, Want: FormatVersion}
	}
	m := new(manifestFile)
	d := json.NewDecoder(reading{ctx, bytes.NewReader(b)})
	d.DisallowUnknownFields()
	if err := decodeJSON(d, m); err != nil {
		return nil, err
	}
	var bad error
	m.Manifest = mapStrings(m.Manifest, func(s string) string {
		u, err := unescape(s)
		if err != nil {
			bad = err
		}
		return u
	})
	if bad != nil {
		return nil, bad
	}
	return m, m.check()
}

// decodeJSON reads a document that is all there is.
func decodeJSON(d *json.Decoder, to any) error {
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return cmp.Or(err, errors.New("something stands behind the end"))
	}
	return nil
}

// reading is a reader that ends with its context: to decode megabytes of JSON takes long.
type reading struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r reading) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b[:min(len(b), 1<<20)])
}

// check says what is inconsistent in a decoded manifest.
func (m *manifestFile) check() error {
	if m.Manifest.Intervals != len(m.IntervalList) {
		return fmt.Errorf("%d intervals promised, %d listed", m.Manifest.Intervals, len(m.IntervalList))
	}
	for i := range m.IntervalList {
		in := &m.IntervalList[i]
		if i > 0 && m.IntervalList[i-1].ID >= in.ID {
			return fmt.Errorf("interval %d is not in order", in.ID)
		}
		if in.LogRaw < 0 || in.LogRaw > maxMemberRaw || in.Events < 0 || in.Pages < 0 || in.EndPages < 0 ||
			in.Threads < 0 || in.Maps < 0 || in.HeadSize < 0 || in.LogSize < 0 {
			return fmt.Errorf("interval %d has a count out of bounds", in.ID)
		}
		if in.End > EndStop {
			return fmt.Errorf("interval %d has end kind %d", in.ID, in.End)
		}
	}
	seen := make(map[string]bool, len(m.Members))
	for _, info := range m.Members {
		if seen[info.Name] {
			return fmt.Errorf("member %q is listed twice", info.Name)
		}
		seen[info.Name] = true
		if h, err := hex.DecodeString(info.Hash); err != nil || len(h) != len(PageHash{}) {
			return fmt.Errorf("member %q has no hash", info.Name)
		}
		if info.Size < 0 || info.Pages < 0 || info.Pages > maxPack/8 {
			return fmt.Errorf("member %q has a count out of bounds", info.Name)
		}
		if !knownKinds[info.Kind] && !info.Optional {
			return &VersionError{Have: FormatVersion, Want: FormatVersion, Part: info.Kind}
		}
	}
	return nil
}

// mapStrings applies f to the strings that come from the recorded system,
// which need not be UTF-8.
func mapStrings(m Manifest, f func(string) string) Manifest {
	all := func(list []string) []string {
		var out []string
		for _, s := range list {
			out = append(out, f(s))
		}
		return out
	}
	m.Tool, m.Program, m.Cwd, m.Hostname, m.Kernel = f(m.Tool), f(m.Program), f(m.Cwd), f(m.Hostname), f(m.Kernel)
	m.Args, m.Env, m.Notes = all(m.Args), all(m.Env), all(m.Notes)
	var processes []Process
	for _, p := range m.Processes {
		p.Program, p.Cwd, p.Args, p.Env = f(p.Program), f(p.Cwd), all(p.Args), all(p.Env)
		processes = append(processes, p)
	}
	m.Processes = processes
	return m
}

// JSON strings cannot hold bytes that are not UTF-8; these are written as
// base64 behind a prefix, as is any string that begins with the prefix.
const escapePrefix = "base64:"

func escape(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, escapePrefix) {
		return s
	}
	return escapePrefix + base64.StdEncoding.EncodeToString([]byte(s))
}

func unescape(s string) (string, error) {
	rest, ok := strings.CutPrefix(s, escapePrefix)
	if !ok {
		return s, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil {
		return "", errors.New("string is not base64 behind its prefix")
	}
	return string(b), nil
}
