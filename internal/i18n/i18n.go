// Package i18n finds the words for people. English is the language the program
// is written in: an English sentence, or the format it is made with, is the key
// under which its translation stands in the catalogue.
//
// Faces translate what they say themselves with [Printer.T]. What comes from
// below (notices, reasons, errors) arrives as an English sentence, is kept on
// record as such, and is translated on its way to the person by [Printer.Said],
// which knows the format it was made with by its shape.
package i18n

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The languages.
const (
	English = "en"
	Chinese = "zh-CN"
)

//go:embed zh-CN.json
var chinese []byte

// Printer speaks one language. The zero Printer, and a nil one, speak English.
// A Printer is safe for concurrent use.
type Printer struct {
	source []byte // the catalogue, not read yet

	once   sync.Once
	table  map[string]string
	shapes []shape
}

// For returns a Printer for lang; English if there is no catalogue for it.
func For(lang string) *Printer {
	if lang == Chinese {
		return &Printer{source: chinese}
	}
	return &Printer{}
}

// Choose is the language to speak: the one asked for, or that of the
// environment.
func Choose(asked string, getenv func(string) string) string {
	for _, name := range []string{asked, getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")} {
		switch {
		case name == "":
		case strings.HasPrefix(strings.ToLower(name), "zh"):
			return Chinese
		default:
			return English
		}
	}
	return English
}

// T is a sentence of the caller's own, made with an English format.
func (p *Printer) T(format string, args ...any) string {
	if t, ok := p.words()[format]; ok {
		format = t
	}
	if len(args) == 0 && !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, args...)
}

func (p *Printer) words() map[string]string {
	if p == nil || p.source == nil {
		return nil
	}
	p.once.Do(func() {
		if err := json.Unmarshal(p.source, &p.table); err != nil {
			panic("i18n: the catalogue is broken: " + err.Error())
		}
		for format := range p.table {
			if s, ok := shapeOf(format); ok {
				p.shapes = append(p.shapes, s)
			}
		}
		slices.SortFunc(p.shapes, func(a, b shape) int {
			return cmp.Or(cmp.Compare(b.literal, a.literal), strings.Compare(a.format, b.format))
		})
	})
	return p.table
}

// maxNesting is how deep sentences may hold sentences.
const maxNesting = 4

// Said translates a sentence that was made elsewhere. What is not in the
// catalogue stays as it is.
func (p *Printer) Said(text string) string {
	if p.words() == nil {
		return text
	}
	return p.said(text, maxNesting)
}

func (p *Printer) said(text string, depth int) string {
	if t, ok := p.table[text]; ok && !strings.Contains(t, "%") {
		return t
	}
	if depth == 0 || text == "" {
		return text
	}
	if strings.Contains(text, "\n") {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = p.said(l, depth-1)
		}
		return strings.Join(lines, "\n")
	}
	if blank := len(text) - len(strings.TrimLeft(text, " ")); blank > 0 {
		return text[:blank] + p.said(text[blank:], depth)
	}
	if parts := strings.Split(text, "; "); len(parts) > 1 && !p.known(text) {
		for i, s := range parts {
			parts[i] = p.said(s, depth-1)
		}
		return strings.Join(parts, "；")
	}
	for _, s := range p.shapes {
		if m := s.match(text); m != nil {
			for i := range m {
				m[i] = p.said(m[i], depth-1)
			}
			return fill(p.table[s.format], m)
		}
	}
	return text
}

// known reports whether a whole sentence has a shape of its own.
func (p *Printer) known(text string) bool {
	return slices.ContainsFunc(p.shapes, func(s shape) bool { return strings.Contains(s.format, "; ") && s.match(text) != nil })
}

// shape recognises the sentences that one format makes.
type shape struct {
	format  string
	literal int // letters that are always there: the more, the surer
	expr    func() *regexp.Regexp
}

var verb = regexp.MustCompile(`%(?:\[\d+\])?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z%]`)

// shapeOf makes a shape of a format with verbs. A format of verbs alone would
// recognise anything and is none.
func shapeOf(format string) (shape, bool) {
	places := verb.FindAllStringIndex(format, -1)
	literal := len(format)
	var b strings.Builder
	b.WriteString(`^`)
	from, verbs := 0, 0
	for _, at := range places {
		literal -= at[1] - at[0]
		b.WriteString(regexp.QuoteMeta(format[from:at[0]]))
		from = at[1]
		switch format[at[1]-1] {
		case '%':
			b.WriteString(`%`)
			continue
		case 'd':
			b.WriteString(`([-+]?\d+)`)
		default:
			b.WriteString(`(.+?)`)
		}
		verbs++
	}
	b.WriteString(regexp.QuoteMeta(format[from:]) + `$`)
	if verbs == 0 || literal < 3 {
		return shape{}, false
	}
	return shape{format, literal, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(b.String()) })}, true
}

// match is what stands in the places of the verbs, or nil.
func (s shape) match(text string) []string {
	head, _, _ := strings.Cut(s.format, "%")
	if !strings.HasPrefix(text, head) {
		return nil
	}
	m := s.expr().FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return m[1:]
}

// fill puts values in the places of a format's verbs, as they are.
func fill(format string, values []string) string {
	next := 0
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		if v == "%%" {
			return "%"
		}
		i := next
		if rest, ok := strings.CutPrefix(v, "%["); ok {
			n, _, _ := strings.Cut(rest, "]")
			if k, err := strconv.Atoi(n); err == nil {
				i = k - 1
			}
		} else {
			next++
		}
		if i < 0 || i >= len(values) {
			return v
		}
		return values[i]
	})
}
