package deviate

import (
	"fmt"
	"path"
	"strings"

	"vplay/loader"
	"vplay/replay/debug/text"
)

// The result as text: the likeliest deviation with what decided it, a picture of the whole run, and a line
// for each of the others.

// words say what a kind of deviation is.
var words = map[Why]string{
	NewBranch: "a branch went where no good run went",
	Omission:  "a branch did not do what a good run did there",
	MoreTurns: "a loop turned more often than in any good run",
	Deeper:    "a function called itself more often than in any good run",
	Together:  "a branch went this way behind another one, as in no good run",
	NewCaller: "a branch went this way, called from where no good run did that",
	Data:      "what is wrong was made here, and not in good runs",
	Fault:     "the flow of control did not go another way before: the fault itself",
}

// String writes the result.
func (r *Result) String() string {
	var b strings.Builder
	for i := range r.Deviations {
		d := &r.Deviations[i]
		if i == 0 {
			r.first(&b, d)
			r.picture(&b, d)
			continue
		}
		if i == 1 {
			b.WriteString("less likely:\n")
		}
		fmt.Fprintf(&b, "  %s  %s  %s\n", d.Bad.Position, lineText(d.Bad.At), d.what())
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "  and %s\n", text.Plural(r.Left, "more deviation"))
	}
	if d := r.First; d != nil {
		fmt.Fprintf(&b, "the first difference of all: %s  %s\n", d.Position, lineText(d.At))
	}
	fmt.Fprintf(&b, "for %s at %s of %s", text.Printable(r.What), r.Position, text.Printable(r.Bad))
	return b.String()
}

// what says what a deviation is.
func (d *Deviation) what() string {
	s := words[d.Why]
	if d.Turns > 0 {
		s += fmt.Sprintf(" (%s, at most %s)", text.Count(d.Turns), text.Count(d.MostTurns))
	}
	return s
}

// first writes the deviation that counts.
func (r *Result) first(b *strings.Builder, d *Deviation) {
	fmt.Fprintf(b, "%s: %s\n", lineText(d.Bad.At), d.what())
	d.Bad.write(b, "bad ")
	if d.Good.Position != nil {
		d.Good.write(b, "good")
	} else {
		b.WriteString("  good  no good run came here\n")
	}
	fmt.Fprintf(b, "  %s instructions from there to the fault, %s away in its slice\n", text.Count(d.Window), text.Plural(d.Distance, "line"))
}

// lineText writes function and line of a place.
func lineText(l *loader.Location) string {
	if l.Line > 0 {
		return text.Printable(fmt.Sprintf("%s, %s:%d", l.Function, path.Base(l.File), l.Line))
	}
	return text.Printable(l.String())
}

// write writes one side.
func (s *Side) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "  %s  %s  %s", name, s.Position, text.Printable(s.At.String()))
	if src := s.At.Source(); src != "" {
		fmt.Fprintf(b, " %s", text.Printable(src))
	}
	if s.To != nil {
		to := s.To.String()
		if s.To.Line > 0 {
			to = fmt.Sprintf("line %d", s.To.Line)
		}
		fmt.Fprintf(b, " to %s", text.Printable(to))
	}
	fmt.Fprintf(b, "  (%s)\n", text.Printable(s.Run))
	if s.Decided != "" {
		fmt.Fprintf(b, "        %s\n", s.Decided)
	}
	for i := range s.Values {
		v := &s.Values[i]
		fmt.Fprintf(b, "        %s = %s", v.Name, v.Text)
		if v.Origin != "" {
			fmt.Fprintf(b, "  from %s", v.Origin)
		}
		b.WriteString("\n")
	}
}

// shades are the characters of the picture, from no difference to nothing but difference.
const shades = " .:-=+*#"

// picture writes how different the run was over its length, with a mark at the deviation.
func (r *Result) picture(b *strings.Builder, d *Deviation) {
	b.WriteString("  difference over time  |")
	for _, x := range r.Difference {
		i := int(x * float64(len(shades)))
		if x > 0 {
			i = max(i, 1)
		}
		b.WriteByte(shades[min(i, len(shades)-1)])
	}
	b.WriteString("|\n")
	at := 0
	if r.Instructions > 0 {
		at = int(float64(r.Instructions-min(r.Instructions, d.Window)) / float64(r.Instructions) * float64(len(r.Difference)))
	}
	fmt.Fprintf(b, "  %s^ the deviation\n", strings.Repeat(" ", len("difference over time  |")+min(at, len(r.Difference)-1)))
}
