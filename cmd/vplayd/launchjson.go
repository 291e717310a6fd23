package main

import (
	"bytes"
	"encoding/json"
	"errors"
)

// launch.json belongs to the user: JSON with comments and commas before closing
// brackets. It is changed as text: a configuration of the same name is replaced
// where it stands, another one is put in front, and not a byte changes elsewhere.

// mergeLaunch returns the text of a launch.json with the configurations in it.
// The error says why it cannot be changed.
func mergeLaunch(old []byte, configs []launchConfig) ([]byte, error) {
	old = bytes.TrimPrefix(old, []byte("\ufeff"))
	if len(bytes.TrimSpace(old)) == 0 {
		return []byte("{\n    \"version\": \"0.2.0\",\n    \"configurations\": [\n" + configText(configs) + "\n    ]\n}\n"), nil
	}
	for i := range configs {
		var err error
		if old, err = mergeOne(old, &configs[i]); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// errNoList says that a launch.json has no list to put a configuration in.
var errNoList = errors.New(`it has no list "configurations"`)

// mergeOne puts one configuration into the text.
func mergeOne(old []byte, config *launchConfig) ([]byte, error) {
	list, entries, err := configurations(plainJSON(old))
	if err != nil {
		return nil, err
	}
	from, to := list, list
	text := "\n        " + configJSON(config)
	if len(entries) > 0 {
		text += ","
	}
	for _, e := range entries {
		if e.name == config.Name {
			from, to, text = e.from, e.to, configJSON(config)
			break
		}
	}
	out := append(append(append([]byte(nil), old[:from]...), text...), old[to:]...)
	if !json.Valid(plainJSON(out)) {
		return nil, errors.New("it is not understood")
	}
	return out, nil
}

// configEntry is one configuration of a launch.json, in old[from:to].
type configEntry struct {
	name     string
	from, to int
}

// configurations finds the list of configurations: the offset behind its bracket,
// and what is in it.
func configurations(text []byte) (list int, entries []configEntry, err error) {
	if !json.Valid(text) {
		return 0, nil, errors.New("it is not understood")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, nil, errNoList
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, nil, err
		}
		if key != "configurations" {
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return 0, nil, err
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return 0, nil, errNoList
		}
		list = int(d.InputOffset())
		for d.More() {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return 0, nil, err
			}
			var head struct{ Name string }
			_ = json.Unmarshal(raw, &head) // what is no object has no name
			end := int(d.InputOffset())
			entries = append(entries, configEntry{head.Name, end - len(raw), end})
		}
		return list, entries, nil
	}
	return 0, nil, errNoList
}

// plainJSON returns text of the same length in which comments, and commas before
// closing brackets, are blanks.
func plainJSON(text []byte) []byte {
	out := bytes.Clone(text)
	comma := -1 // a comma behind which nothing has come yet
	for i := 0; i < len(out); {
		switch n := tokenLength(out[i:]); {
		case n > 1 && out[i] == '/':
			blank(out[i : i+n])
			i += n
		default:
			switch out[i] {
			case ' ', '\t', '\r', '\n':
			case ',':
				comma = i
			case ']', '}':
				if comma >= 0 {
					out[comma] = ' '
				}
				comma = -1
			default:
				comma = -1
			}
			i += n
		}
	}
	return out
}

// tokenLength returns how long the string or comment at the start of b is, 1 for
// anything else.
func tokenLength(b []byte) int {
	switch {
	case b[0] == '"':
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"', '\n':
				return i + 1
			}
		}
		return len(b)
	case bytes.HasPrefix(b, []byte("//")):
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return i
		}
		return len(b)
	case bytes.HasPrefix(b, []byte("/*")):
		if i := bytes.Index(b[2:], []byte("*/")); i >= 0 {
			return i + 4
		}
		return len(b)
	}
	return 1
}

// blank turns all but line ends into blanks.
func blank(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// dapPort is the port that serve --dap listens on unless told otherwise, by
// custom that of debug adapters under development.
const dapPort = 4711
