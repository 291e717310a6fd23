package dwarf

import (
	"debug/dwarf"
	"path"
	"slices"
)

// The names of the source files that a module was compiled from, as a list for people. Where
// the code of a file's lines is, is in places.go.

// Sources returns the paths of the source files that the module's units were compiled from,
// as the compiler was given them, without those that they include; sorted, most at most.
func (m *Module) Sources(most int) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	for _, u := range m.allUnits() {
		name, _ := u.entry.Val(dwarf.AttrName).(string)
		if name == "" || m.meter.spend(1) != nil {
			continue
		}
		if dir, ok := u.entry.Val(dwarf.AttrCompDir).(string); ok && !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		list = append(list, name)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), most)]
}
