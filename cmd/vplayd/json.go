package main

import (
	"encoding/json"
	"io"
)

// JSON as vplayd writes it, for scripts: one object a line, and no character escaped for
// HTML's sake.

// encodeLine writes an object as a line of JSON. The error is w's.
func encodeLine(w io.Writer, x any) error { return newJSONEncoder(w).Encode(x) }

// newJSONEncoder returns an encoder that leaves <, > and & as they are.
func newJSONEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
