package export

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"vplay/loader/image"
)

// Options say what of a recording is exported.
type Options struct {
	PID int32 // the process
	// First and Last are the intervals where Some is set, else all are exported.
	First, Last uint32
	Some        bool
	// Symbols are where the files of the process's modules come from.
	Symbols *image.Symbols
	// Workers is how many intervals are replayed at once where the format allows that; 0 means one for each CPU. Progress is as of
	// observe.Options; Done, when set, is called when an interval is through.
	Workers  int
	Progress func(n uint64)
	Done     func()

	// Functions is a regular expression for names of functions, Depth how deep calls are, for formats that list calls. Table is for csv.
	Functions string
	Depth     int
	Table     string
}

// Check returns what is wrong with what a user has chosen.
func (o *Options) Check() error {
	if _, err := regexp.Compile(o.Functions); err != nil {
		return fmt.Errorf("--functions: %w", err)
	}
	if o.Depth < 0 {
		return fmt.Errorf("--depth %d is not a depth", o.Depth)
	}
	if o.Table != "" && !slices.Contains(Tables(), o.Table) {
		return fmt.Errorf("there is no table %q: it is one of %s", o.Table, strings.Join(Tables(), ", "))
	}
	return nil
}
