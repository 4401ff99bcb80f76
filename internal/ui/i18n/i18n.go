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
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
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
	ascii  bool   // our own signs are those of ASCII

	once  sync.Once
	table map[string]string

	shapesOnce sync.Once
	known      shapes
}

// For returns a Printer for lang; English if there is no catalogue for it.
func For(lang string) *Printer {
	if lang == Chinese {
		return &Printer{source: chinese}
	}
	return &Printer{}
}

// Lang is the language that p speaks.
func (p *Printer) Lang() string {
	if p == nil || p.source == nil {
		return English
	}
	return Chinese
}

// ASCII has p write the signs of its own sentences with ASCII only. It is called before
// p is used.
func (p *Printer) ASCII() *Printer {
	p.ascii = true
	return p
}

// asciiSigns are the signs that sentences are written with, and what stands for them.
var asciiSigns = strings.NewReplacer(" · ", ", ", "·", "*", "…", "...", "—", "-", "•", "-", "→", "->", "≥", ">=", "✓", "ok:", "✗", "x", "\u00a0", " ")

// Signs is text of the program's own, without people's data, as the terminal can show it.
func (p *Printer) Signs(text string) string {
	if p == nil || !p.ascii {
		return text
	}
	if p.Lang() == Chinese {
		text = strings.ReplaceAll(text, " · ", "，")
	}
	return asciiSigns.Replace(text)
}

// Choose is the language to speak: the one asked for, or that of the
// environment.
func Choose(asked string, getenv func(string) string) string {
	for i, name := range []string{asked, getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")} {
		switch {
		case name == "", i == 0 && !strings.HasPrefix(strings.ToLower(name), "zh") && !strings.HasPrefix(strings.ToLower(name), English): // or none that there is
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
	format = p.Signs(format)
	if len(args) == 0 && !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, lists(format, args)...)
}

// lists are args with those written anew that a translation takes for names.
func lists(format string, args []any) []any {
	if !strings.Contains(format, "%+") {
		return args
	}
	args = slices.Clone(args)
	next := 0
	for {
		_, verb, after, ok := cutVerb(format)
		if !ok {
			return args
		}
		if format = after; verb == "%%" {
			continue
		}
		if next = argument(verb, next); next < len(args) && isList(verb) {
			args[next] = listed(fmt.Sprint(args[next]))
		}
		next++
	}
}

func (p *Printer) words() map[string]string {
	if p == nil || p.source == nil {
		return nil
	}
	p.once.Do(func() {
		if err := json.Unmarshal(p.source, &p.table); err != nil {
			panic("i18n: the catalog is broken: " + err.Error())
		}
	})
	return p.table
}

// shapes are those of the catalogue's formats.
func (p *Printer) shapes() shapes {
	p.shapesOnce.Do(func() {
		all := shapes{byWord: make(map[string][]*shape)}
		for format := range p.words() {
			s, ok := shapeOf(format)
			switch word := s.word(); {
			case !ok:
			case word == "":
				all.others = append(all.others, s)
			default:
				all.byWord[word] = append(all.byWord[word], s)
			}
		}
		p.known = all
	})
	return p.known
}
