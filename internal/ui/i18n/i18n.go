// Package i18n translates text for the user. The program is written in English: an English sentence, or
// its format, is the key of its translation in the catalogue.
//
// Faces translate their own text with [Printer.T], and a [message.Message] or an error from lower layers with
// [Printer.Translate] and [Printer.TranslateError]. Other text from lower layers (notices, reasons)
// arrives and is recorded as an English sentence. [Printer.TranslateText] translates it on its way to the user:
// it recognizes the format by the sentence's shape.
package i18n

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Supported languages.
const (
	English = "en"
	Chinese = "zh-CN"
)

//go:embed zh-CN.json
var chineseCatalogue []byte

// Printer translates into one language. The zero Printer, and a nil one, speak English. A Printer is
// safe for concurrent use.
type Printer struct {
	source []byte // the catalogue, not parsed yet
	ascii  bool   // replace our own signs with ASCII

	once  sync.Once
	table map[string]string

	shapesOnce  sync.Once
	shapesIndex shapeIndex
}

// For returns the Printer for lang, English if lang has no catalogue.
func For(lang string) *Printer {
	if lang == Chinese {
		return &Printer{source: chineseCatalogue}
	}
	return &Printer{}
}

// Lang returns p's language.
func (p *Printer) Lang() string {
	if p == nil || p.source == nil {
		return English
	}
	return Chinese
}

// ASCII makes p write the signs in its own sentences in ASCII. Call it before p is used.
func (p *Printer) ASCII() *Printer {
	p.ascii = true
	return p
}

// asciiSigns maps the signs in our sentences to their ASCII replacements.
var asciiSigns = strings.NewReplacer(" · ", ", ", "·", "*", "…", "...", "—", "-", "•", "-", "→", "->", "≥", ">=", "✓",
	"ok:", "✗", "x", "\u00a0", " ")

// DisplaySigns returns the program's own text, without user data, in signs that the terminal can show.
func (p *Printer) DisplaySigns(text string) string {
	if p == nil || !p.ascii {
		return text
	}
	if p.Lang() == Chinese {
		text = strings.ReplaceAll(text, " · ", "，")
	}
	return asciiSigns.Replace(text)
}

// Choose returns the language to use: the requested one, otherwise the environment's.
func Choose(asked string, getenv func(string) string) string {
	for i, name := range []string{asked, getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")} {
		switch {
		// or an unsupported one
		case name == "", i == 0 && !strings.HasPrefix(strings.ToLower(name), "zh") &&
			!strings.HasPrefix(strings.ToLower(name), English):
		case strings.HasPrefix(strings.ToLower(name), "zh"):
			return Chinese
		default:
			return English
		}
	}
	return English
}

// T translates and formats the caller's own English sentence.
func (p *Printer) T(format string, args ...any) string {
	if t, ok := p.catalogue()[format]; ok {
		format = t
	}
	format = p.DisplaySigns(format)
	if len(args) == 0 && !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, translateLists(format, args)...)
}

// translateLists returns args, with the lists of names rewritten for a translation.
func translateLists(format string, args []any) []any {
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
		if next = argIndex(verb, next); next < len(args) && isList(verb) {
			args[next] = chineseList(fmt.Sprint(args[next]))
		}
		next++
	}
}

func (p *Printer) catalogue() map[string]string {
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

// shapes returns the shapes of the catalogue's formats, built on first use.
func (p *Printer) shapes() shapeIndex {
	p.shapesOnce.Do(func() {
		all := shapeIndex{byWord: make(map[string][]*shape)}
		for format := range p.catalogue() {
			s, ok := parseShape(format)
			switch word := s.indexWord(); {
			case !ok:
			case word == "":
				all.others = append(all.others, s)
			default:
				all.byWord[word] = append(all.byWord[word], s)
			}
		}
		p.shapesIndex = all
	})
	return p.shapesIndex
}
