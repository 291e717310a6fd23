package debug

import (
	"maps"
	"slices"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
)

// What callers of this package, above all cmd/vplayd, may ask of a cursor beyond what front
// ends ask by package api. What takes more than a few lines has a file of its own.

// Recording returns the recording.
func (g *Cursor) Recording() *checkpoint.Recording { return g.s.Rec }

// Timeline returns the timeline of the present program.
func (g *Cursor) Timeline() *replay.Timeline { return g.t }

// Machine returns the machine at the present position, for reading. The cursor must have left the final
// image, as Criterion has it do.
func (g *Cursor) Machine() *replay.Machine { return g.cur.Machine() }

// At returns the present position, and AtEnd whether it is the last one. Preconditions: as Machine.
func (g *Cursor) At() checkpoint.Position { return g.cur.Position() }

// AtEnd is described there.
func (g *Cursor) AtEnd() bool { return g.cur.AtEnd() }

// Names returns what names addresses at the present position. It is the cursor's until it moves.
func (g *Cursor) Names() *loader.Resolver { return g.names() }

// Modules returns the ELF files in memory at the present position.
func (g *Cursor) Modules() []*image.Module { return g.names().Modules() }

// ModuleFiles returns the files of the present program's modules, which belong to the session.
func (g *Cursor) ModuleFiles() *loader.ModuleFiles { return g.moduleFiles() }

// Module finds a module by its path in the memory map, or by its name in the
// dynamic linker's list; nil when there is none.
func (g *Cursor) Module(name string) *image.Module { return g.files.module(name) }

// LinkMap returns the dynamic linker's list at the present position.
func (g *Cursor) LinkMap() []image.Link { return image.LinkMap(g.maps(), Memory{g.mem()}) }

// BuildELF rebuilds the file of a module, for the caller alone.
func (g *Cursor) BuildELF(mod *image.Module) ([]byte, error) {
	return image.BuildELF(mod, Memory{g.mem()}, g.session.symbols)
}

// LocalFiles names the files of this machine that are used, "" when there are none.
func (g *Cursor) LocalFiles() string { return g.files.local() }

// NoLines says why no source lines of the program's file are known; "" when they are. It looks at no other module: to
// know which of them calls are in takes the libraries' debugging information, for which no debugger is to wait.
func (g *Cursor) NoLines() string {
	return NoLines(g.names(), []*image.Module{g.Module(g.program().path)}, present{g}, g.session.symbols)
}

// Commands lists the names of the monitor commands.
func Commands() []string { return slices.Sorted(maps.Keys(monitorCommands)) }

// EditorCommands returns, for each monitor command that means something in an editor's
// console, how it is used and what it does.
func EditorCommands() (list [][2]string) {
	for _, n := range Commands() {
		if c := monitorCommands[n]; !c.gdbOnly {
			list = append(list, [2]string{c.usage, c.help})
		}
	}
	return list
}
