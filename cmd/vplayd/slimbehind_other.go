//go:build !(linux && amd64)

package main

import (
	"context"
	"errors"
)

// slimInBackground is for the process that record leaves behind, on Linux.
func slimInBackground(context.Context, string, slimFlags) error {
	return withHint(errors.New("slim --background is for the recorder"), exitUsage, "vplayd slim FILE")
}
