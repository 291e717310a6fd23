package export

import "vplay/replay/debug/text"

// printable returns a name from a recording without what would end a line or move a terminal's cursor.
func printable(s string) string { return text.Printable(s) }
