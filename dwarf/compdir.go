package dwarf

import "debug/dwarf"

// The folder that a program was compiled in, and the list of a file's units, of which
// it is counted. Source files and their names are in lines.go.

// CompDir returns the folder that most of the file's compilation units were
// compiled in, "" when it is not known.
func (m *Module) CompDir() (dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	count := map[string]int{}
	for _, u := range m.allUnits() {
		if d, ok := u.entry.Val(dwarf.AttrCompDir).(string); ok && d != "" {
			if count[d]++; count[d] > count[dir] {
				dir = d
			}
		}
	}
	return dir
}

// allUnits returns the units with code.
func (m *Module) allUnits() []*unit {
	if m.data == nil {
		return nil
	}
	if !m.begun {
		m.begun = true
		m.readUnits()
	}
	return m.units
}
