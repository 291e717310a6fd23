package vscode

import (
	"testing"

	"vplay/tests/internal/tool"
)

// vplayd is the path of the command under test, in a folder that holds nothing else.
var vplayd string

func TestMain(m *testing.M) { tool.Main(m, &vplayd) }
