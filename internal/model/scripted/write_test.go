package scripted

import (
	"fmt"
	"strings"
	"time"
)

// String writes s in the form that [Parse] reads.
func (s Script) String() string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
			b.WriteString(separator + "\n")
		}
		r.write(&b)
	}
	return b.String()
}

func (r Reply) write(b *strings.Builder) {
	if r.Conversation != "" {
		writeText(b, "to", r.Conversation)
	}
	for _, w := range r.Want {
		writeText(b, "want", w)
	}
	for _, s := range r.Steps {
		writeStep(b, s)
	}
	if u := r.Usage; u != nil {
		fmt.Fprintf(b, "usage %d %d %d\n", u.In, u.Out, u.Cached)
	}
	if r.Stop != "" || r.isEmpty() {
		fmt.Fprintf(b, "stop %s\n", r.stop())
	}
	switch {
	case r.Repeat == Forever:
		b.WriteString("repeat\n")
	case r.Repeat != 0:
		fmt.Fprintf(b, "repeat %d\n", r.Repeat)
	}
	if r.Else != nil {
		b.WriteString("else\n")
		r.Else.write(b)
	}
}

func writeStep(b *strings.Builder, s Step) {
	switch s := s.(type) {
	case Say:
		writeText(b, "say", string(s))
	case Reason:
		writeText(b, "reason", string(s))
	case Call:
		verb := "call " + s.Name
		if s.HasID {
			verb += " id=" + s.ID
		}
		writeText(b, verb, s.Args)
	case Wait:
		fmt.Fprintf(b, "wait %s\n", time.Duration(s))
	case Cut:
		b.WriteString("cut")
		if s.Retry {
			b.WriteString(" retry")
		}
		b.WriteString("\n")
	case Fail:
		fmt.Fprintf(b, "fail %s", s.Kind)
		if s.After > 0 {
			fmt.Fprintf(b, " after=%s", s.After)
		}
		fmt.Fprintf(b, " %s\n", s.Text)
	}
}

// writeText writes a verb and its text on one line where that reads back the
// same, else as a block.
func writeText(b *strings.Builder, verb, text string) {
	if text == "" || strings.TrimSpace(text) == text && !strings.Contains(text, "\n") && blockEnd(text) == "" && !strings.HasPrefix(text, "id=") {
		fmt.Fprintf(b, "%s %s\n", verb, text)
		return
	}
	mark := "END"
	for strings.Contains("\n"+text+"\n", "\n"+mark+"\n") {
		mark += "_"
	}
	fmt.Fprintf(b, "%s <<%s\n%s\n%s\n", verb, mark, text, mark)
}
