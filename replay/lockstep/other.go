//go:build !(linux && amd64)

package lockstep

import (
	"context"

	"vplay/checkpoint"
	"vplay/replay"
)

// What stands for Run and Unlike on systems where recorded code cannot be executed.

// Supported says whether Run can work here.
const Supported = false

// Run returns ErrNotSupported.
func Run(context.Context, *replay.Session, Options) (Result, error) { return Result{}, ErrNotSupported }

// Unlike returns "": there is no CPU to be unlike.
func Unlike(*checkpoint.Identity) string { return "" }
