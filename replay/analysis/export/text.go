package export

import "vplay/replay/debug/text"

// Names come from recordings, which are not trusted: what each format has to escape beyond this is in its file.

// printable returns a name from a recording without what would end a line or move a terminal's cursor.
func printable(s string) string { return text.Printable(s) }
