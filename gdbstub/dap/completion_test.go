package dap

import (
	"fmt"
	"testing"
)

// TestCompletionStart: a proposal begins where the client, which counts columns from 0 or 1,
// says that the word does; VS Code is not told.
func TestCompletionStart(t *testing.T) {
	for _, c := range []struct {
		client string
		column int
		want   string
	}{
		{`{"columnsStartAt1":false}`, 2, `{"label":"when","type":"keyword","start":0,"length":2}`},
		{`{"columnsStartAt1":true}`, 3, `{"label":"when","type":"keyword","start":1,"length":2}`},
		{`{"linesStartAt1":false}`, 3, `{"label":"when","type":"keyword","start":1,"length":2}`},
		{`{"columnsStartAt1":true,"clientID":"vscode"}`, 3, `{"label":"when","type":"keyword","length":2}`},
	} {
		s := connect(t, serverOf(newFake()))
		s.begin(c.client)
		s.wants("completions", fmt.Sprintf(`{"text":"wh","column":%d}`, c.column), c.want)
	}
}
